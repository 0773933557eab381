import Glibc

/// A set of signals that all threads leave to one that waits for them.
public struct SignalSet: Sendable {
  private var set = sigset_t()

  /// The set of these signals.
  public init(_ signals: [CInt]) {
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
  }

  /// Keeps the signals from the calling thread, and from the threads that it will start.
  public func block() {
    var set = set
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Waits for the next of the signals and takes it.
  public func wait() -> CInt {
    var set = set
    var signal: CInt = 0
    while sigwait(&set, &signal) != 0 {}
    return signal
  }

  /// Keeps waiting to be taken: sends a signal of the set to this process.
  public static func send(_ signal: CInt) {
    kill(getpid(), signal)
  }
}
