import Fuse
import Glibc
import Layers
import Posix
import Routing

/// A WRITE to the control file. Its lines are run one after the other. The reply is the number of bytes of the lines
/// that succeeded before the first that failed or, if that is the first line, its errno.
struct ControlFileWrite: Sendable {
  private let runner: ControlCommandRunner
  private let writer: Caller
  /// The offset in the file at which it ends.
  private let end: Int64
  private let bytes: [UInt8]
  /// How many of the bytes came with the WRITE before.
  private let carried: Int
  /// The bytes of its write(2) up to its end.
  private let sizeOfWrite: Int
  private let deferred: DeferredReply<ReplyKind.Write>
  private var done = 0

  /// - Parameter line: the line that it continues; empty for a new write(2).
  init(
    _ runner: ControlCommandRunner, _ bytes: UnsafeRawBufferPointer, at offset: Int64, after line: [UInt8],
    sizeOfWrite: Int, _ writer: Caller, _ reply: consuming Reply<ReplyKind.Write>
  ) {
    self.runner = runner
    self.writer = writer
    end = offset &+ Int64(bytes.count)
    self.bytes = line + bytes
    carried = line.count
    self.sizeOfWrite = sizeOfWrite
    deferred = DeferredReply(reply)
  }

  /// Milliseconds for which it may keep a worker that others wait for.
  private static let timeSlice: CInt = 2

  /// Runs the lines that are left. After a barrier it goes on on the thread that reached it, since a request's
  /// worker must not wait for other requests. A long write goes on on a serial worker.
  func run() { run(until: Self.endOfSlice) }

  private static var endOfSlice: TimeSpec { TimeSpec.monotonic.advanced(byMilliseconds: timeSlice) }

  /// - Parameter deadline: nil on the serial worker, and on a thread of a layer.
  private func run(until deadline: TimeSpec?) {
    var rest = self
    var sliceEnd = deadline ?? Self.endOfSlice
    while let line = rest.next {
      if sliceEnd < TimeSpec.monotonic {
        if deferred.isInterrupted { return rest.replyLost(EINTR) }
        let after = rest
        if deadline != nil, runner.worker.add({ after.run(until: nil) }) { return }
        sliceEnd = Self.endOfSlice
      }
      if line.endIndex == bytes.count {
        switch hold(line) {
        case .complete: break
        case .full: return rest.replyLost(EAGAIN)
        case .fragment, .buffer:
          rest.skip(line)
          return rest.reply(nil)
        }
      }
      if WriteReassembler.wasZeroed(line, endingAt: end &- Int64(bytes.count - line.endIndex)) {
        return rest.replyLost(EAGAIN)
      }
      switch runner.run(line, writer) {
      case .done: rest.skip(line)
      case .failed(let error): return rest.reply(error)
      case .deferred:
        let again = rest
        if runner.store.stack.runDeferred({ again.run(until: nil) }) { return }
        return rest.reply(RoutingError(.unreadable, "the layer does not answer"))
      case .needsBarrier:
        rest.skip(line)
        let after = rest
        let isQueued = runner.barrier {
          after.runner.appendApplied(line)
          after.run()
        }
        if isQueued { return }
        // The mount ends: there is nothing left to wait for.
        runner.appendApplied(line)
      }
    }
    rest.reply(nil)
  }

  /// Holds the last line if it may be incomplete.
  private func hold(_ line: ArraySlice<UInt8>) -> WriteReassembler.Hold {
    let size = bytes.count - carried
    let hold = runner.control.reassembler.withLock {
      $0.hold(line, endingAt: end, size: size, sizeOfWrite: sizeOfWrite, writer)
    }
    if hold == .buffer { runner.heldLines.watch { [runner] in runner.finish($0) } }
    return hold
  }

  /// The next line, with its newline if it has one.
  private var next: ArraySlice<UInt8>? {
    if done == bytes.count { return nil }
    // What was carried has no newline.
    let end = bytes[max(done, carried)...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
    return bytes[done..<end]
  }

  private mutating func skip(_ line: ArraySlice<UInt8>) { done += line.count }

  /// Replies that the rest was not run.
  private func replyLost(_ error: CInt) {
    guard let reply = deferred.take() else { return }
    defer { runner.control.didReply() }
    if done > carried { reply.send(count: done - carried) } else { reply.fail(Errno(rawValue: error)) }
  }

  private func reply(_ error: RoutingError?) {
    guard let reply = deferred.take() else { return }
    defer { runner.control.didReply() }
    guard let error, done == 0 else { return reply.send(count: done - carried) }
    if carried > 0, let line = next {
      let rest = line.dropFirst(carried)
      runner.control.reassembler.withLock { $0.recordRejection(of: rest, writer, error) }
    }
    reply.fail(error.code.errno)
  }
}

extension RoutingErrorCode {
  /// The errno that write(2) returns.
  var errno: Errno {
    switch self {
    case .malformed: .invalidArgument
    case .noRoute: .noSuchFileOrDirectory
    case .shadowed: .fileExists
    case .tooLong: Errno(rawValue: E2BIG)
    case .notPermitted: .notPermitted
    case .forbidden: .permissionDenied
    case .unreadable: .ioError
    }
  }
}
