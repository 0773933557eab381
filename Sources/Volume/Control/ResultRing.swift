/// A ring buffer of the last results, limited to a number of lines and bytes but always holding the newest line.
struct ResultRing {
  private let lineLimit: Int
  private let byteLimit: Int

  private var ring: [[UInt8]] = []
  /// The index of the oldest line, once the ring has wrapped.
  private var oldest = 0
  /// How many of the oldest lines were emptied to stay within `byteLimit`.
  private var dropped = 0
  private(set) var size = 0

  /// The bytes that the lines may have: 1 KiB each, and at least 1 MiB.
  static func byteLimit(lines: Int) -> Int { max(1 << 20, lines << 10) }

  init(lineLimit: Int = ControlOptions.defaultResults) {
    self.lineLimit = lineLimit
    byteLimit = Self.byteLimit(lines: lineLimit)
  }

  var count: Int { ring.count - dropped }

  /// The line with an index, counted from the oldest.
  subscript(index: Int) -> [UInt8] { ring[(oldest + dropped + index) % ring.count] }

  mutating func append(_ line: [UInt8]) {
    if ring.count < lineLimit {
      ring.append(line)
    } else {
      size -= ring[oldest].count
      ring[oldest] = line
      oldest = (oldest + 1) % lineLimit
      dropped = max(0, dropped - 1)
    }
    size += line.count
    while size > byteLimit, dropped < ring.count - 1 {
      let index = (oldest + dropped) % ring.count
      size -= ring[index].count
      ring[index] = []
      dropped += 1
    }
  }
}
