import CLinux
import Glibc

/// The result of a function that runs in a child process, where it can be abandoned: a system call on a failed disk or
/// a hung file system cannot be interrupted.
public enum ForkedCall: Sendable, Equatable {
  case returned([UInt8])
  /// The timeout has passed; the child was killed.
  case timedOut
  /// The child exited without a result.
  case failed

  /// Forks, and runs the function in the child, which has none of the parent's open files. The process must be
  /// single-threaded.
  /// - Throws: EAGAIN, ENOMEM, EMFILE.
  public static func run(
    timeoutMilliseconds limit: CInt, _ body: () -> [UInt8]
  ) throws(Errno) -> ForkedCall {
    let ends = try Descriptor.socketPair(SOCK_STREAM.rawValue)
    let ours = Descriptor(owning: ends.0)
    let child: pid_t
    do {
      let theirs = Descriptor(owning: ends.1)
      child = try checked { linux_fork_writing_to(theirs.rawValue) }
    }
    if child == 0 { finish(with: body()) }
    let answer = answer(from: ours, until: .monotonic.advanced(byMilliseconds: limit))
    kill(child, SIGKILL)
    // A child that is blocked in the kernel is left to init.
    if case .returned = answer { waitpid(child, nil, 0) } else { waitpid(child, nil, WNOHANG) }
    return answer
  }

  /// Writes the result in the child, followed by a byte that marks it as complete.
  private static func finish(with answer: [UInt8]) -> Never {
    var rest = (answer + [0])[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { break }
    }
    _exit(0)
  }

  private static func answer(from end: borrowing Descriptor, until deadline: TimeSpec) -> ForkedCall {
    var answer: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      var polled = pollfd(fd: end.rawValue, events: Int16(POLLIN), revents: 0)
      let ready = poll(&polled, 1, deadline.milliseconds(since: .monotonic))
      if ready == 0 { return .timedOut }
      if ready < 0 { if errno == EINTR { continue } else { return .failed } }
      let count = recv(end.rawValue, &chunk, chunk.count, 0)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return answer.popLast() == 0 ? .returned(answer) : .failed }
      answer += chunk[..<count]
    }
  }
}
