import CLibrary
import Posix

/// Asks a server for an object and its ranges.
final class ObjectServer: Sendable {
  let client: HTTPClient
  let url: RemoteURL
  /// Milliseconds after which a read no longer waits for the server.
  let timeout: CInt
  private let answers = Locked(Answers())

  struct Answers: Sendable {
    /// When the server answered last, and since when it has not; by `TimeSpec.monotonic`.
    var last: TimeSpec?
    var silentSince: TimeSpec?
    var fault: RemoteFault?
  }

  /// The bytes at the end of an object that are asked for first: archives have their tables there.
  static let tailSize: UInt64 = (1 << 20) + UInt64(BlockFile.blockSize)
  /// Milliseconds for an attempt while the server is known not to answer, so that what is cached is not kept waiting.
  private static let briefly: CInt = 1000

  /// - Parameter headers: of the user's own.
  init(_ url: RemoteURL, timeout: CInt, headers: HeadersFile?) throws(RemoteFault) {
    (self.url, self.timeout) = (url, timeout)
    client = try HTTPClient(url, headers)
  }

  var state: Answers { answers.withLock { $0 } }

  private func note(_ fault: RemoteFault?) {
    answers.withLock { answers in
      answers.fault = fault
      if case .unreachable = fault {
        answers.silentSince = answers.silentSince ?? .monotonic
      } else {
        (answers.last, answers.silentSince) = (.monotonic, nil)
      }
    }
  }

  /// Sends a request, again if that may help and there is time for it.
  private func repeated<Result>(
    _ body: (TimeSpec) throws(RemoteFault) -> Result
  ) throws(RemoteFault) -> Result {
    let isSilent = state.silentSince != nil
    let time = isSilent ? min(timeout, Self.briefly) : timeout
    let deadline = TimeSpec.monotonic.advanced(byMilliseconds: time)
    var pause: UInt32 = 50_000
    while true {
      do throws(RemoteFault) {
        let result = try body(deadline)
        note(nil)
        return result
      } catch {
        let isOver = TimeSpec.monotonic.advanced(byMilliseconds: CInt(pause / 1000)) >= deadline
        if !error.isTemporary || isOver {
          note(error)
          throw error
        }
      }
      usleep(pause)
      pause = min(1_000_000, pause * 2)
    }
  }

  // MARK: - Ranges

  /// Reads a range of a state.
  /// - Throws: `changed` if the server has another one.
  func read(_ range: Range<UInt64>, of header: BlockFile.Header) throws(RemoteFault) -> [UInt8] {
    let fields = [
      Array("Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)".utf8), header.validator.condition,
    ]
    return try repeated { deadline throws(RemoteFault) in
      var bytes: [UInt8] = []
      bytes.reserveCapacity(range.count)
      let exchange = Exchange(deadline: deadline) { head in
        Self.verdict(of: head, for: range, of: header)
      } consume: { part in
        bytes += part
      }
      try client.get(fields, exchange)
      return bytes
    }
  }

  private static func verdict(
    of head: ResponseHead, for range: Range<UInt64>, of header: BlockFile.Header
  ) -> Exchange.Verdict {
    switch head.status {
    case 206:
      guard let answer = head.contentRange else { return .fail(.violation("a part without a Content-Range")) }
      if answer.total != header.size || !header.validator.matches(head.validator) { return .fail(.changed) }
      if answer.range != range { return .fail(.violation("another range than the one asked for")) }
      return .read(UInt64(range.count))
    // The object has changed, or has lost its validator, or its end.
    case 200, 412, 416: return .fail(.changed)
    default: return .fail(.status(head.status))
    }
  }

  // MARK: - The object

  /// What the server says of an object when it is asked for its end.
  enum Answer {
    /// It is the state that is known.
    case unchanged
    /// A part of it.
    case part(ResponseHead.ContentRange, Validator, [UInt8])
    /// It has no ranges, or nothing to know states by.
    case noRanges(Validator)
  }

  /// Asks for an object, by its end.
  /// - Parameter known: a state; nil for none.
  func ask(known: Validator?) throws(RemoteFault) -> Answer {
    try repeated { deadline throws(RemoteFault) in
      do throws(RemoteFault) {
        let answer = try ask("-\(Self.tailSize)", known, deadline)
        guard case .noRanges = answer else { return answer }
      } catch {
        guard case .status(let status) = error, status == 416 || status == 501 else { throw error }
      }
      // Some servers have ranges, but not those that count from the end.
      return try ask("0-\(BlockFile.blockSize - 1)", known, deadline)
    }
  }

  private func ask(
    _ range: String, _ known: Validator?, _ deadline: TimeSpec
  ) throws(RemoteFault) -> Answer {
    var fields = [Array("Range: bytes=\(range)".utf8)]
    if let known, !known.entityTag.isEmpty {
      fields.append(Array("If-None-Match: ".utf8) + known.entityTag)
    } else if let known, !known.modified.isEmpty {
      fields.append(Array("If-Modified-Since: ".utf8) + known.modified)
    }
    var bytes: [UInt8] = []
    let exchange = Exchange(deadline: deadline) { head in
      Self.verdict(of: head)
    } consume: { part in
      bytes += part
    }
    try client.get(fields, exchange)
    let head = exchange.head
    if head.status == 304 { return .unchanged }
    if head.status == 206, head.validator.isPresent, let part = head.contentRange {
      return .part(part, head.validator, bytes)
    }
    return .noRanges(head.validator)
  }

  private static func verdict(of head: ResponseHead) -> Exchange.Verdict {
    switch head.status {
    case 200, 304: return .stop
    case 206:
      guard let part = head.contentRange, part.range.count <= Int(tailSize) else {
        return .fail(.violation("another range than the one asked for"))
      }
      return head.validator.isPresent ? .read(UInt64(part.range.count)) : .stop
    default: return .fail(.status(head.status))
    }
  }

  /// Downloads the whole object. No deadline: it ends when nothing comes any more.
  /// - Parameters:
  ///   - begin: receives the validator.
  ///   - body: receives the bytes in order.
  func download(
    begin: (Validator) -> Void, _ body: (UnsafeRawBufferPointer) throws(Errno) -> Void
  ) throws(RemoteFault) {
    try withoutActuallyEscaping(begin) { begin throws(RemoteFault) in
      try withoutActuallyEscaping(body) { body throws(RemoteFault) in
        let exchange = Exchange(deadline: nil) { head in
          if head.status != 200 { return .fail(.status(head.status)) }
          begin(head.validator)
          return .read(head.contentLength)
        } consume: { part throws(Errno) in
          try body(part)
        }
        do throws(RemoteFault) {
          try client.get([], exchange)
          note(nil)
        } catch {
          note(error)
          throw error
        }
      }
    }
  }
}
