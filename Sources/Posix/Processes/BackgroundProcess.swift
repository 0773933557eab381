import CLinux
import CLibrary

/// A background process (daemon), from the fork until it reports that it is ready or has failed.
public final class BackgroundProcess: Sendable {
  /// What the background process reports to its parent.
  public enum Outcome {
    /// It is ready.
    case ready
    /// It has failed, with a message for the user.
    case failed(String)
    /// It ended without a report.
    case ended
  }

  private let report: Locked<Descriptor?>

  /// Forks. The child continues in a new session in `/`; its 0 and 1 are on `/dev/null` once it is ready. The process must
  /// be single-threaded.
  /// - Parameter exit: ends the parent, after the child's report and, unless that is `ready`, its end.
  /// - Throws: EAGAIN, ENOMEM, EMFILE.
  public static func start(exit: (Outcome) -> Never) throws(Errno) -> BackgroundProcess {
    var ends: [CInt] = [-1, -1]
    _ = try checked { linux_pipe(&ends) }
    let reading = Descriptor(owning: ends[0])
    let child: pid_t
    do {
      let writing = Descriptor(owning: ends[1])
      child = try checked { linux_fork() }
      if child == 0 {
        setsid()
        _ = chdir("/")
        return BackgroundProcess(report: writing)
      }
    }
    let result = outcome((try? reading.readToEnd()) ?? [])
    // Its threads, which can have reached a limit, are gone then.
    if case .ready = result {} else { waitpid(child, nil, 0) }
    exit(result)
  }

  init(report: consuming Descriptor) { self.report = Locked(report) }

  /// Leads standard input and output to `/dev/null`, and reports success.
  public func isReady() {
    if let null = try? Descriptor.open("/dev/null", [.readWrite]) {
      dup2(null.rawValue, STDIN_FILENO)
      dup2(null.rawValue, STDOUT_FILENO)
    }
    send([0])
  }

  /// Reports that only the mount is missing, which the parent makes, and waits for it. For a process that
  /// `startDetached` has started.
  /// - Throws: ECONNRESET or EPIPE if the parent has ended or failed.
  public func receiveMount() throws(Errno) -> ReceivedMount {
    try report.withLock { report throws(Errno) in
      guard let socket = report?.rawValue else { throw Errno(rawValue: ECONNRESET) }
      return try ParentChannel.receiveMount(on: socket)
    }
  }

  /// Whether the parent has ended before the report, perhaps by a signal from the terminal.
  public var isAbandoned: Bool {
    report.withLock { report in
      guard let file = report?.rawValue else { return false }
      var polled = pollfd(fd: file, events: 0, revents: 0)
      return poll(&polled, 1, 0) > 0 && polled.revents & Int16(POLLERR | POLLHUP) != 0
    }
  }

  /// Forgets the report without closing anything, in a process that shares open files with one that has sent it.
  public func disown() { report.withLock { _ = $0.take()?.release() } }

  /// Reports a failure.
  public func fail(_ message: String) { send(Array(message.utf8)) }

  /// Sends the only report.
  private func send(_ bytes: [UInt8]) {
    if let report = report.withLock({ $0.take() }) { try? report.writeInOneCall(bytes) }
  }

  private static func outcome(_ report: [UInt8]) -> Outcome {
    if report == [0] { return .ready }
    return report.isEmpty ? .ended : .failed(String(decoding: report, as: UTF8.self))
  }
}
