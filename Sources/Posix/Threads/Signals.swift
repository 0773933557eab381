import CLinux
import CLibrary

/// A set of signals that one thread receives through a `SignalDescriptor` while all threads block them.
public struct SignalSet: Sendable {
  fileprivate var set = sigset_t()

  /// Creates a set.
  public init(_ signals: [CInt]) {
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
  }

  /// Blocks the signals in the calling thread and in the threads that it starts.
  public func block() { change(SIG_BLOCK) }

  /// Unblocks the signals in the calling thread.
  public func unblock() { change(SIG_UNBLOCK) }

  private func change(_ how: CInt) {
    var set = set
    pthread_sigmask(how, &set, nil)
  }

  /// Ignores the signals whose default action ends a process although neither a fault nor a user sends them for that
  /// purpose: timers, I/O notifications, user-defined and real-time signals.
  public static func ignoreStray() {
    let named = [SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGXFSZ]
    for number in named + Array(__libc_current_sigrtmin()...__libc_current_sigrtmax()) {
      signal(number, SIG_IGN)
    }
  }
}

/// A signalfd(2).
public struct SignalDescriptor: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// Calls signalfd(2) with `SFD_CLOEXEC | SFD_NONBLOCK`. The signals must be blocked in all threads.
  /// - Throws: EMFILE, ENFILE, ENOMEM.
  public init(_ signals: SignalSet) throws(Errno) {
    var set = signals.set
    descriptor = Descriptor(owning: try checked { linux_signalfd(&set) })
  }

  /// The descriptor to poll for `POLLIN`.
  public var rawValue: CInt { descriptor.rawValue }

  /// Removes the next pending signal; nil without any.
  public func next() -> CInt? {
    let signal = linux_next_signal(descriptor.rawValue)
    return signal == 0 ? nil : signal
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
