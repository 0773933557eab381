import Posix

/// A ring buffer of the last results, limited to a number of lines and bytes but always holding the newest line.
///
/// Lines are made when they are read. Until then, a result counts with the bytes that it has, which are not more than
/// those of its line: what is dropped for them would be dropped for the lines.
struct ResultRing {
  private let lineLimit: Int
  private let byteLimit: Int

  private var ring: [RetainedResult] = []
  /// The index of the oldest line, once the ring has wrapped.
  private var oldest = 0
  /// How many of the oldest lines were emptied to stay within `byteLimit`.
  private var dropped = 0
  /// All results without a line are among so many of the newest.
  private var unmade = 0
  private(set) var size = 0

  /// More would make the first read wait.
  private static let maxUnmade = 1024

  /// The bytes that the lines may have: 1 KiB each, and at least 1 MiB.
  static func byteLimit(lines: Int) -> Int { max(1 << 20, lines << 10) }

  init(lineLimit: Int = ControlOptions.defaultResults) {
    self.lineLimit = lineLimit
    byteLimit = Self.byteLimit(lines: lineLimit)
  }

  var count: Int { ring.count - dropped }

  /// The result with an index, counted from the oldest.
  subscript(index: Int) -> RetainedResult { ring[place(index)] }

  private func place(_ index: Int) -> Int { (oldest + dropped + index) % ring.count }

  mutating func append(
    _ sequence: UInt64, _ time: TimeSpec, _ text: Span<UInt8>, as form: RetainedResult.Form
  ) {
    size += text.count
    if ring.count < lineLimit {
      ring.append(RetainedResult(sequence, time, text, as: form))
    } else {
      size -= ring[oldest].text.count
      ring[oldest].become(sequence, time, text, as: form)
      oldest += 1
      if oldest == lineLimit { oldest = 0 }
      dropped = max(0, dropped - 1)
    }
    unmade += 1
    dropExcess()
    if unmade > Self.maxUnmade { makeLine(count - unmade) }
  }

  /// Makes all lines.
  mutating func makeLines() {
    while unmade > 0 { makeLine(count - unmade) }
    dropExcess()
  }

  /// Makes the line of the oldest result that may have none.
  private mutating func makeLine(_ index: Int) {
    unmade -= 1
    let place = place(index)
    size -= ring[place].text.count
    ring[place].makeLine()
    size += ring[place].text.count
  }

  private mutating func dropExcess() {
    while size > byteLimit, dropped < ring.count - 1 {
      let place = place(0)
      size -= ring[place].text.count
      ring[place].removeText()
      dropped += 1
    }
    unmade = min(unmade, count)
  }
}
