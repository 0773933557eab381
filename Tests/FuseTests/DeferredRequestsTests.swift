import CFuse
import Glibc
import TestSupport
import Testing

@testable import Fuse
@testable import Posix

@Suite struct DeferredRequestsTests {
  private static let start = TimeSpec(seconds: 1000, nanoseconds: 0)

  private func request(_ unique: UInt64, opcode: UInt32 = 1, caller: Int32 = 7) -> RequestBuffer {
    var bytes = [UInt8](repeating: 0, count: 40)
    bytes.withUnsafeMutableBytes { bytes in
      bytes.storeBytes(of: opcode, toByteOffset: 4, as: UInt32.self)
      bytes.storeBytes(of: unique, toByteOffset: 8, as: UInt64.self)
      bytes.storeBytes(of: caller, toByteOffset: 32, as: Int32.self)
    }
    return bytes.withUnsafeMutableBytes { bytes in
      var buffer = fuse_buf()
      buffer.mem = bytes.baseAddress
      buffer.size = bytes.count
      return RequestBuffer(copying: buffer, RequestHeader(buffer), received: 0)
    }
  }

  private enum Expected: Equatable {
    case known(UInt64)
    case skip(UInt64)
    case fail(UInt64, Errno)
  }

  private func actions(
    _ requests: inout DeferredRequests, after milliseconds: CInt, policy: LayerPolicy = LayerPolicy(),
    isOwn: Bool = false, signals: PendingSignals? = PendingSignals(status: [])
  ) -> [Expected] {
    requests.actions(
      now: Self.start.advanced(byMilliseconds: milliseconds), policy: { _ in policy }, isOwn: { _ in isOwn },
      signals: { _ in signals }
    ).map { action in
      switch action {
      case .answerFromKnown(let buffer): .known(buffer.header.unique)
      case .answerWithoutLayer(let buffer): .skip(buffer.header.unique)
      case .fail(let header, let error): .fail(header.unique, error)
      }
    }
  }

  private func one(isInterrupted: Bool = false) -> DeferredRequests {
    var requests = DeferredRequests()
    requests.add(request(2), for: 1, isInterrupted: isInterrupted, now: Self.start)
    return requests
  }

  @Test("the header of a request is read, and its copy is the same")
  func header() {
    let header = request(44, opcode: 28, caller: 1234).header
    #expect(header.opcode == 28 && header.unique == 44 && header.caller == 1234 && header.isRepeatable)
    #expect(!request(44, opcode: 9).header.isRepeatable)
  }

  @Test("the requests of a layer are taken in order, those of another one are not")
  func order() {
    var requests = DeferredRequests()
    for unique: UInt64 in [2, 4, 6] {
      requests.add(request(unique), for: Int(unique % 4), isInterrupted: false, now: Self.start)
    }
    #expect(requests.next(for: 2)?.header.unique == 2)
    #expect(requests.next(for: 2)?.header.unique == 6)
    #expect(requests.next(for: 2) == nil)
    #expect(requests.next(for: 0)?.header.unique == 4)
    for unique: UInt64 in [2, 4, 6] { requests.finish(unique) }
    #expect(requests.isEmpty)
  }

  @Test("a request that was answered while it waited for a thread is not processed")
  func answeredInQueue() {
    var requests = one()
    requests.answer(2)
    #expect(requests.isEmpty && requests.next(for: 1) == nil)
  }

  @Test("a request is tried with the last known state once, and fails after the timeout")
  func timeout() {
    var requests = one()
    let policy = LayerPolicy(timeout: 300)
    #expect(actions(&requests, after: 19, policy: policy) == [])
    #expect(actions(&requests, after: 20, policy: policy) == [.known(2)])
    #expect(actions(&requests, after: 299, policy: policy) == [])
    #expect(actions(&requests, after: 300, policy: policy) == [.fail(2, .ioError)])
    #expect(actions(&requests, after: 400, policy: policy) == [])
  }

  @Test("without a timeout a request waits; with skips it is answered without the layer")
  func policies() {
    var requests = one()
    #expect(actions(&requests, after: 20) == [.known(2)])
    #expect(actions(&requests, after: 10_000_000) == [])
    let policy = LayerPolicy(timeout: 300, skips: true)
    #expect(actions(&requests, after: 10_000_000, policy: policy) == [.skip(2)])
  }

  @Test("a request whose caller is killed ends at once, one whose caller handles the signal after a second")
  func signals() {
    let status = { (bits: String) in PendingSignals(status: Array("SigPnd:\t\(bits)\nShdPnd:\t0\n".utf8)) }
    let (kill, interrupt, child) = (status("0000000000000100"), status("2"), status("0000000000010000"))
    #expect(kill.isFatal && !interrupt.isFatal && interrupt.isEnding && !child.isEnding)
    var requests = one(isInterrupted: true)
    #expect(actions(&requests, after: 1, signals: kill) == [.fail(2, .interrupted)])
    #expect(actions(&requests, after: 19, signals: interrupt) == [])
    #expect(actions(&requests, after: 1000, signals: interrupt) == [.fail(2, .interrupted)])
    #expect(actions(&requests, after: 1000, signals: child) == [.known(2)])
    #expect(actions(&requests, after: 1000, signals: nil) == [.fail(2, .interrupted)])
    var other = one()
    #expect(actions(&other, after: 1, signals: kill) == [], "no signal was reported")
    #expect(other.interrupt(2) && !other.interrupt(4))
    #expect(actions(&other, after: 1, signals: kill) == [.fail(2, .interrupted)])
  }

  @Test("the daemon's own requests fail soon; what was answered is left alone")
  func own() {
    var requests = one()
    #expect(actions(&requests, after: 200, isOwn: true) == [.fail(2, .ioError)])
    _ = requests.next(for: 1)
    requests.answer(2)
    #expect(actions(&requests, after: 1_000_000, policy: LayerPolicy(timeout: 1)) == [])
    #expect(!requests.isEmpty)
    requests.finish(2)
    #expect(requests.isEmpty)
  }

  @Test("an interrupted request that no worker processes is forgotten after a while")
  func interruptedRequests() {
    func time(_ milliseconds: CInt) -> TimeSpec { Self.start.advanced(byMilliseconds: milliseconds) }
    var interrupted = InterruptedRequests()
    interrupted.add(2, now: time(0))
    for _ in 0..<100 { interrupted.see(2, false, now: time(199)) }
    #expect(interrupted.all == [2])
    interrupted.see(2, true, now: time(300))
    interrupted.see(2, false, now: time(499))
    #expect(interrupted.all == [2])
    interrupted.see(2, false, now: time(500))
    #expect(interrupted.isEmpty && !interrupted.remove(2))
    interrupted.add(4, now: time(0))
    #expect(interrupted.remove(4) && interrupted.isEmpty)
  }

  @Test("the worker of an interrupted request replies itself, unless a layer keeps it")
  func interruptedWork() {
    func activity(in layer: Int?, calls: UInt64) -> ThreadActivity {
      ThreadActivity(request: 2, caller: 1, layer: layer, calls: calls)
    }
    var interrupted = InterruptedRequests()
    interrupted.add(2, now: Self.start)
    func isAtWork(_ activity: ThreadActivity?, at milliseconds: CInt) -> Bool {
      interrupted.isAtWork(on: 2, activity, now: Self.start.advanced(byMilliseconds: milliseconds))
    }
    // It may be about to hand the request over, or goes from call to call.
    #expect(isAtWork(activity(in: nil, calls: 1), at: 0))
    #expect(isAtWork(activity(in: nil, calls: 1), at: 400))
    #expect(isAtWork(activity(in: 0, calls: 2), at: 600))
    #expect(isAtWork(activity(in: 0, calls: 3), at: 900))
    #expect(isAtWork(activity(in: 0, calls: 3), at: 990))
    #expect(!isAtWork(activity(in: 0, calls: 3), at: 1000))
    // A lock that a worker in such a call holds.
    #expect(isAtWork(activity(in: nil, calls: 3), at: 1100))
    #expect(!isAtWork(activity(in: nil, calls: 3), at: 1600))
    // A long copy.
    #expect(isAtWork(activity(in: 0, calls: 4), at: 1999))
    #expect(!isAtWork(activity(in: 0, calls: 5), at: 2000))
    #expect(!isAtWork(nil, at: 2000))
  }
}
