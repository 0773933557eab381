import Posix
import Routing

/// Reads the results of a control file from where it left off.
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

  /// - Throws: as `ControlFile.page`.
  mutating func read(_ file: borrowing ControlFile) throws(Errno) -> Batch {
    var batch = Batch()
    let page = try file.page(
      from: ResultsProtocol.Position(next, offset: UInt64(partial.count)), size: bufferSize)
    if page.first > next {
      batch.missed = next...page.first - 1
      next = page.first
      partial = []
    }
    append(page.text, to: &batch)
    batch.hasMore = next <= page.newest
    bufferSize = batch.hasMore ? ResultsProtocol.bufferSizes.large : ResultsProtocol.bufferSizes.small
    return batch
  }

  private mutating func append(_ text: ArraySlice<UInt8>, to batch: inout Batch) {
    var rest = text
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      if let result = ResultLine((partial + rest[..<end])[...]) { batch.results.append(result) }
      partial = []
      next += 1
      rest = rest[(end + 1)...]
    }
    partial += rest
  }
}
