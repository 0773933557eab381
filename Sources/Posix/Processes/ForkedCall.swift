import CLinux
import CLibrary

/// The result of a function that runs in a child process, where it can be abandoned: a system call on a failed disk or
/// a hung file system cannot be interrupted.
public enum ForkedCall: Sendable, Equatable {
  case returned([UInt8])
  /// The timeout has passed; the child was killed. With what it had sent before.
  case timedOut(sent: [UInt8])
  /// The child exited without a result.
  case failed

  /// Forks, and runs the function in the child, which has none of the parent's open files. The process must be
  /// single-threaded.
  /// - Throws: EAGAIN, ENOMEM, EMFILE.
  public static func run(
    timeoutMilliseconds limit: CInt, _ body: () -> [UInt8]
  ) throws(Errno) -> ForkedCall {
    let deadline = TimeSpec.monotonic.advanced(byMilliseconds: limit)
    return ForkedChild.outcomes(of: [try ForkedChild { _ in body() }], until: deadline)[0]
  }

  /// Runs functions in a child process each, all at the same time. A function can send the first part of its result
  /// early.
  /// - Returns: for each function its result, or the error of starting its process: EAGAIN, ENOMEM, EMFILE.
  public static func runAll(
    until deadline: TimeSpec, _ bodies: [(_ send: ([UInt8]) -> Void) -> [UInt8]]
  ) -> [Result<ForkedCall, Errno>] {
    let children = bodies.map { body in
      do throws(Errno) { return Result<ForkedChild, Errno>.success(try ForkedChild(body)) } catch {
        return .failure(error)
      }
    }
    var outcomes = ForkedChild.outcomes(of: children.compactMap { try? $0.get() }, until: deadline)[...]
    return children.map { child in child.map { _ in outcomes.removeFirst() } }
  }
}

/// A child process that runs a function, and the parent's end of the socket that takes the result.
private struct ForkedChild {
  private let process: pid_t
  private let end: CInt
  private var received: [UInt8] = []
  private var outcome: ForkedCall?

  /// - Throws: EAGAIN, ENOMEM, EMFILE.
  init(_ body: (_ send: ([UInt8]) -> Void) -> [UInt8]) throws(Errno) {
    let ends = try Descriptor.socketPair(SOCK_STREAM.rawValue)
    let ours = Descriptor(owning: ends.0)
    do {
      let theirs = Descriptor(owning: ends.1)
      process = try checked { linux_fork_writing_to(theirs.rawValue) }
    }
    if process == 0 { Self.finish(with: body(Self.send)) }
    end = ours.release()
  }

  /// Writes the result in the child, followed by a byte that marks it as complete.
  private static func finish(with answer: [UInt8]) -> Never {
    send(answer + [0])
    _exit(0)
  }

  private static func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { break }
    }
  }

  /// Waits for the results of children, and ends them.
  static func outcomes(of children: [ForkedChild], until deadline: TimeSpec) -> [ForkedCall] {
    var children = children
    while children.contains(where: { $0.outcome == nil }) {
      // poll(2) ignores negative descriptors.
      var polled = children.map { child in
        pollfd(fd: child.outcome == nil ? child.end : -1, events: Int16(POLLIN), revents: 0)
      }
      let ready = poll(&polled, nfds_t(polled.count), deadline.milliseconds(since: .monotonic))
      if ready < 0, errno == EINTR { continue }
      if ready <= 0 { break }
      for (index, entry) in polled.enumerated() where entry.revents != 0 { children[index].receive() }
    }
    return children.map { $0.ended() }
  }

  private mutating func receive() {
    var chunk = [UInt8](repeating: 0, count: 4096)
    let count = recv(end, &chunk, chunk.count, 0)
    if count < 0, errno == EINTR { return }
    if count > 0 { return received += chunk[..<count] }
    outcome = received.popLast() == 0 ? .returned(received) : .failed
  }

  /// Ends the child. One that is blocked in the kernel is left to init.
  private func ended() -> ForkedCall {
    close(end)
    kill(process, SIGKILL)
    if case .returned? = outcome { waitpid(process, nil, 0) } else { waitpid(process, nil, WNOHANG) }
    return outcome ?? .timedOut(sent: received)
  }
}
