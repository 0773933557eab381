import CLinux
import Glibc

/// A set of signals that one thread receives with sigwait(3) while all threads block them.
public struct SignalSet: Sendable {
  private var set = sigset_t()

  /// Creates a set.
  public init(_ signals: [CInt]) {
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
  }

  /// Blocks the signals in the calling thread and in the threads that it starts.
  public func block() {
    var set = set
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Calls sigwait(3).
  public func wait() -> CInt {
    var set = set
    var signal: CInt = 0
    while sigwait(&set, &signal) != 0 {}
    return signal
  }

  /// Sends a signal to this process.
  public static func send(_ signal: CInt) {
    kill(getpid(), signal)
  }
}

/// The signal that interrupts a blocking system call of a thread.
public enum Interrupt {
  static let signal = SIGUSR2

  /// Unblocks the signal in the calling thread, whose creator may have blocked all signals.
  static func unblock() {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, signal)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
  }

  /// Installs an empty handler without `SA_RESTART`, so that calls return EINTR.
  public static func installHandler() throws(Errno) {
    _ = try checked { linux_install_interrupt_handler(signal) }
  }
}
