import CLibrary
import Posix
import Routing

/// Reads the results of a control file from where it left off. What a daemon replies is not trusted: it may be another
/// user's.
struct ResultReader: Sendable {
  /// What one call found.
  struct Batch {
    /// Results that are no longer kept, from the first on that was not read.
    var missed: ClosedRange<UInt64>?
    var results: [ResultLine] = []
    /// Whether there are more.
    var hasMore = false
  }

  /// The sequence number of the next result.
  private(set) var next: UInt64
  /// The beginning of its line.
  private var partial: [UInt8] = []
  /// Small unless much is left to be read, since the kernel copies all of it.
  private var bufferSize = ResultsProtocol.bufferSizes.small

  /// - Parameter sequence: the sequence number after which to read.
  init(after sequence: UInt64) { next = sequence == .max ? sequence : sequence + 1 }

  /// The most bytes of a line. Those that a daemon writes have some hundred KiB at most, from a URL of 64 KiB.
  static let lineLimit = 16 << 20

  /// - Throws: as `ControlFileHandle.page`; EPROTO as `take`.
  mutating func read(_ file: borrowing ControlFileHandle) throws(Errno) -> Batch {
    try take(file.page(from: position, size: bufferSize))
  }

  /// Where the next page begins.
  var position: ResultsProtocol.Position { ResultsProtocol.Position(next, offset: UInt64(partial.count)) }

  /// Takes the page at `position`.
  /// - Throws: EPROTO if the numbers of the results are not consecutive, a line is too long, or there is to be more but
  ///   nothing of it.
  mutating func take(_ page: ResultsProtocol.Page) throws(Errno) -> Batch {
    var batch = Batch()
    let former = position
    if page.first < next { throw Errno(rawValue: EPROTO) }
    if page.first > next {
      batch.missed = next...page.first - 1
      next = page.first
      partial = []
    }
    try append(page.text, to: &batch)
    batch.hasMore = next <= page.newest
    if batch.hasMore, position == former { throw Errno(rawValue: EPROTO) }
    bufferSize = batch.hasMore ? ResultsProtocol.bufferSizes.large : ResultsProtocol.bufferSizes.small
    return batch
  }

  private mutating func append(_ text: ArraySlice<UInt8>, to batch: inout Batch) throws(Errno) {
    var rest = text
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      guard let result = ResultLine((partial + rest[..<end])[...]), result.sequence == next, next < .max
      else {
        throw Errno(rawValue: EPROTO)
      }
      batch.results.append(result)
      partial = []
      next += 1
      rest = rest[(end + 1)...]
    }
    partial += rest
    if partial.count > Self.lineLimit { throw Errno(rawValue: EPROTO) }
  }
}
