import CLinux
import CLibrary

/// A child process that programs take this process for: the signals that they send to this one reach the child.
public final class SupervisedChild {
  private let process: pid_t
  private let signals: SignalDescriptor

  /// SIGINT and SIGQUIT are not passed on: a terminal sends them to both processes.
  private static let passedOn = [SIGHUP, SIGTERM, SIGUSR1, SIGUSR2]
  /// The signals that end a process by a user's wish.
  private static let received = SignalSet(passedOn + [SIGINT, SIGQUIT, SIGCHLD])

  /// Forks. The process must be single-threaded. The child is killed when this process ends before it.
  /// - Parameter body: runs in the child, with the signals as they were.
  /// - Throws: EAGAIN, ENOMEM, EMFILE, ENFILE.
  public init(_ body: () -> Never) throws(Errno) {
    var mask = sigset_t()
    pthread_sigmask(SIG_BLOCK, nil, &mask)
    Self.received.block()
    // A process that ignores it would not learn how its children end.
    let inherited = signal(SIGCHLD, SIG_DFL)
    let signals = try SignalDescriptor(Self.received)
    process = try checked { linux_fork() }
    self.signals = signals
    if process != 0 { return }
    _ = linux_signal_at_end_of_parent(SIGKILL)
    _ = signal(SIGCHLD, inherited)
    pthread_sigmask(SIG_SETMASK, &mask, nil)
    body()
  }

  /// Waits until the child has ended.
  /// - Returns: its exit status, or 128 and the number of the signal that ended it, as shells have it.
  public func waitForEnd() -> CInt {
    var status: CInt = 0
    while waitpid(process, &status, WNOHANG) == 0 {
      guard let signal = nextSignal(milliseconds: -1) else { continue }
      if Self.passedOn.contains(signal) { kill(process, signal) }
    }
    let signal = status & 0x7F
    return signal == 0 ? status >> 8 & 0xFF : 128 + signal
  }

  /// Waits for a signal to this process.
  /// - Parameter milliseconds: the timeout; negative for none.
  /// - Returns: nil after the timeout.
  public func nextSignal(milliseconds: CInt) -> CInt? {
    var polled = pollfd(fd: signals.rawValue, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, milliseconds) > 0 ? signals.next() : nil
  }
}
