import Posix

/// One request and its answer. Used by the thread that sends it alone.
final class Exchange {
  /// What is to be done with an answer.
  enum Verdict {
    /// Exactly so many bytes are expected; any number if nil.
    case read(UInt64?)
    /// The body is not of interest.
    case stop
    case fail(RemoteFault)
  }

  private(set) var head = ResponseHead()
  var failure: RemoteFault?
  private let deadline: TimeSpec?
  /// Milliseconds without any byte after which a request without a deadline ends.
  private static let longestPause: CInt = 30_000
  private var lastByte = TimeSpec.monotonic
  private let judge: (ResponseHead) -> Verdict
  private let consume: (UnsafeRawBufferPointer) throws(Errno) -> Void
  private var hasBegun = false
  private var isStopped = false
  private var expected: UInt64?
  private var received: UInt64 = 0
  /// Of redirects, whose bodies are of no interest.
  private var skipped = 0
  private static let mostSkipped = 1 << 20

  /// - Parameters:
  ///   - deadline: by `TimeSpec.monotonic`; nil to end only when nothing comes any more.
  ///   - judge: called once the headers are complete.
  ///   - consume: called with each part of the body that is to be read.
  init(
    deadline: TimeSpec?, judge: @escaping (ResponseHead) -> Verdict,
    consume: @escaping (UnsafeRawBufferPointer) throws(Errno) -> Void
  ) {
    (self.deadline, self.judge, self.consume) = (deadline, judge, consume)
  }

  var isLate: Bool { (deadline ?? lastByte.advanced(byMilliseconds: Self.longestPause)) < .monotonic }

  func addHeader(_ line: UnsafeRawBufferPointer) -> Bool {
    lastByte = .monotonic
    // Trailers say nothing of use.
    if hasBegun { return true }
    if head.add(ArraySlice(line)) { return true }
    failure = .violation("too many headers")
    return false
  }

  func addBody(_ part: UnsafeRawBufferPointer) -> Bool {
    lastByte = .monotonic
    if head.isRedirect { return skip(part.count) }
    begin()
    if failure != nil || isStopped { return false }
    received += UInt64(part.count)
    if let expected, received > expected {
      failure = .violation("more bytes than it has promised")
      return false
    }
    do throws(Errno) { try consume(part) } catch {
      failure = .local(error)
      return false
    }
    return true
  }

  private func skip(_ count: Int) -> Bool {
    skipped += count
    if skipped <= Self.mostSkipped { return true }
    failure = .violation("a redirect with a large body")
    return false
  }

  private func begin() {
    if hasBegun { return }
    hasBegun = true
    if let fault = head.fault { return failure = .violation(fault) }
    switch judge(head) {
    case .read(let count): expected = count
    case .stop: isStopped = true
    case .fail(let fault): failure = fault
    }
  }

  /// To be called when libcurl is done.
  func end() {
    // libcurl reports that the body was not read.
    if isStopped { failure = nil }
    if failure != nil { return }
    begin()
    // The connection may have been lost.
    if failure == nil, !isStopped, let expected, received < expected {
      failure = .unreachable("fewer bytes than it has promised")
    }
  }
}
