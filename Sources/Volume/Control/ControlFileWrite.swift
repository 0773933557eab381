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
  /// Its `unique`, without the mark of one that is sent again.
  private let request: UInt64
  private var done = 0

  /// - Parameter line: the line that it continues; empty for a new write(2).
  init(
    _ runner: ControlCommandRunner, _ bytes: UnsafeRawBufferPointer, at offset: Int64, after line: [UInt8],
    sizeOfWrite: Int, _ writer: Caller, _ reply: consuming Reply<ReplyKind.Write>
  ) {
    self.runner = runner
    self.writer = writer
    end = offset &+ Int64(bytes.count)
    self.bytes = line.isEmpty ? Array(bytes) : line + bytes
    carried = line.count
    self.sizeOfWrite = sizeOfWrite
    deferred = DeferredReply(reply, isPolled: true)
    request = ResentRequest.current
  }

  /// Runs all lines, or those that a predecessor has left.
  func begin() {
    guard ResentRequest.isCurrent, let progress = runner.control.progress(of: request) else { return run() }
    var rest = self
    rest.done = Int(clamping: progress.errno == 0 ? progress.origin.end : progress.origin.start)
    guard let code = RouteErrno(number: CInt(truncatingIfNeeded: progress.errno)) else { return rest.run() }
    rest.reply(RoutingError(code, "refused before"))
  }

  private func origin(of line: ArraySlice<UInt8>) -> ControlLog.Origin {
    ControlLog.Origin(request: request, start: UInt64(line.startIndex), end: UInt64(line.endIndex))
  }

  /// Milliseconds for which it may keep a worker that others wait for.
  private static let timeSlice: CInt = 2
  /// Bytes of lines after which it asks for the time again.
  private static let checkInterval = 256

  /// Runs the lines that are left. After a barrier it continues on the thread that reached it, since a request's
  /// worker must not wait for other requests. A long write continues on a serial worker.
  func run() { run(until: Self.endOfSlice) }

  private static var endOfSlice: TimeSpec { TimeSpec.monotonic.advanced(byMilliseconds: timeSlice) }

  /// - Parameter deadline: nil on the serial worker, and on a thread of a layer.
  private func run(until deadline: TimeSpec?) {
    var rest = self
    var sliceEnd = deadline ?? Self.endOfSlice
    var nextCheck = done
    while let line = rest.next {
      let isChecked = rest.done >= nextCheck
      if isChecked { nextCheck = rest.done + Self.checkInterval }
      if isChecked, sliceEnd < TimeSpec.monotonic {
        if deferred.isInterrupted { return rest.replyLost(.interrupted) }
        let after = rest
        if deadline != nil, runner.worker.add({ after.run(until: nil) }) { return }
        sliceEnd = Self.endOfSlice
      }
      if line.endIndex == bytes.count, line.last != UInt8(ascii: "\n") {
        // The rest of the line will not come.
        if deferred.isInterrupted { return rest.replyLost(.interrupted) }
        switch hold(line) {
        case .complete: break
        case .full: return rest.replyLost(.lost)
        case .fragment, .buffer:
          rest.skip(line)
          return rest.reply(nil)
        }
      }
      if WriteReassembler.wasZeroed(line, endingAt: end &- Int64(bytes.count - line.endIndex)) {
        return rest.replyLost(.lost)
      }
      if deadline != nil, BuiltInCommand.mayTakeLong(line) {
        deferred.setPolled(false)
        let after = rest
        if runner.layerWorker.add({ after.run(until: nil) }) { return }
      }
      let outcome = runner.run(line, writer, rest.origin(of: line))
      if outcome.waits { deferred.setPolled(false) }
      switch outcome {
      case .done: rest.skip(line)
      case .handsOver:
        let left = rest
        return runner.handOver { left.leaveToSuccessor() }
      case .needsLayers:
        rest.skip(line)
        let after = rest
        return runner.layersAreVisible.whenOpen { after.continue(afterApplying: line) }
      case .failed(let error): return rest.reply(error)
      case .deferred:
        let again = rest
        if runner.store.stack.runDeferred({ again.run(until: nil) }) { return }
        return rest.reply(RoutingError(.unreadable, "the layer does not answer"))
      case .needsBarrier:
        rest.skip(line)
        let after = rest
        if runner.barrier({ after.continue(afterApplying: line) }) { return }
        if deferred.isForSuccessor { return leaveToSuccessor() }
        // The mount ends.
        runner.appendApplied(line, rest.origin(of: line))
      }
    }
    rest.reply(nil)
  }

  private func `continue`(afterApplying line: ArraySlice<UInt8>) {
    // A process that stops does not wait for the changes of layers that it has not seen.
    if deferred.isForSuccessor { return leaveToSuccessor() }
    runner.appendApplied(line, origin(of: line))
    deferred.setPolled(true)
    run()
  }

  private func leaveToSuccessor() { deferred.take()?.leaveToSuccessor() }

  /// Holds the last line if it may be incomplete.
  private func hold(_ line: ArraySlice<UInt8>) -> WriteReassembler.Hold {
    let size = bytes.count - carried
    let hold = runner.control.reassembler.withLock {
      $0.hold(line, endingAt: end, size: size, sizeOfWrite: sizeOfWrite, writer)
    }
    if hold == .buffer { runner.watchHeldLines() }
    return hold
  }

  /// The next line, with its newline if it has one.
  private var next: ArraySlice<UInt8>? {
    if done == bytes.count { return nil }
    // What was carried has no newline.
    let start = max(done, carried)
    let length = bytes[start...].withUnsafeBytes { Self.lineLength($0) }
    return bytes[done..<start + length]
  }

  /// The bytes up to the first newline, which counts, or all.
  private static func lineLength(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard let start = bytes.baseAddress, let end = memchr(start, CInt(UInt8(ascii: "\n")), bytes.count) else {
      return bytes.count
    }
    return UnsafeRawPointer(end) - start + 1
  }

  private mutating func skip(_ line: ArraySlice<UInt8>) { done += line.count }

  /// Replies that the rest was not run.
  private func replyLost(_ error: RouteErrno) { send(errno: done > carried ? nil : error.errno) }

  private func reply(_ error: RoutingError?) {
    guard let error, done == 0 else { return send(errno: nil) }
    if carried > 0, let line = next {
      let rest = line.dropFirst(carried)
      runner.control.reassembler.withLock { $0.recordRejection(of: rest, writer, error) }
    }
    send(errno: error.code.errno)
  }

  /// - Parameter errno: nil for the number of bytes that are done.
  private func send(errno: Errno?) {
    guard let reply = deferred.take() else { return }
    var header = ControlLog.ResultHeader(origin: ControlLog.Origin(request: request))
    header.origin.end = UInt64(max(0, done - carried))
    header.errno = UInt64(errno?.rawValue ?? 0)
    runner.control.record(header)
    Self.send(header, reply)
    runner.control.didReply()
  }

  static func send(_ header: ControlLog.ResultHeader, _ reply: consuming Reply<ReplyKind.Write>) {
    if header.errno == 0 {
      reply.send(count: Int(clamping: header.origin.end))
    } else {
      reply.fail(Errno(rawValue: CInt(truncatingIfNeeded: header.errno)))
    }
  }
}

/// Requests that the kernel sends again, since a predecessor had read and not answered them.
enum ResentRequest {
  /// FUSE_UNIQUE_RESEND.
  private static let mark: UInt64 = 1 << 63

  /// The `unique` of the request that the thread processes, as it was the first time.
  static var current: UInt64 { RequestThread.request & ~mark }

  /// Whether the request that the thread processes is one.
  static var isCurrent: Bool { RequestThread.request & mark != 0 }
}

extension RouteErrno {
  /// As the type of system calls' errors.
  var errno: Errno { Errno(rawValue: number) }
}
