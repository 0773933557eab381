import Posix
import Routing

/// What the control file reads as: a line for each route, then a line for each of the last results.
struct ControlContent {
  private(set) var table: RouteTable
  /// The number of the last result.
  private(set) var sequence: UInt64 = 0
  /// Moves with every change, so that the kernel fetches the pages anew.
  private(set) var modified = TimeSpec.now
  private var tableText: [UInt8]
  private var results = ResultRing()
  /// The whole text, once it was asked for.
  private var cachedText: [UInt8]?

  init(_ table: RouteTable) {
    self.table = table
    tableText = Array(table.text.utf8)
  }

  /// The text's length in bytes.
  var size: Int { tableText.count + results.size }

  /// The text.
  var text: [UInt8] {
    mutating get {
      if let cachedText { return cachedText }
      var text = tableText
      text.reserveCapacity(size)
      for line in results.lines { text += line }
      cachedText = text
      return text
    }
  }

  /// Notes what a line comes to.
  /// - Returns: why it was refused; nil if it was not.
  mutating func record(
    _ line: [UInt8], _ body: (inout RouteTable) throws(RoutingError) -> RouteResult.Outcome
  ) -> RoutingError? {
    var refusal: RoutingError?
    let outcome: RouteResult.Outcome
    let routes = table.count
    do throws(RoutingError) { outcome = try body(&table) } catch {
      refusal = error
      outcome = .rejected(error)
    }
    if table.count != routes { tableText = Array(table.text.utf8) }
    sequence += 1
    let time = TimeSpec.now
    let result = RouteResult(
      sequence: sequence, time: Timestamp(seconds: time.seconds, nanoseconds: Int64(time.nanoseconds)),
      url: line, outcome: outcome)
    results.append(result.json + [UInt8(ascii: "\n")])
    touch(time)
    cachedText = nil
    return refusal
  }

  /// Moves the time on.
  mutating func touch(_ time: TimeSpec = .now) { modified = max(time, modified.next) }
}

/// The last results: 1,024 of them or 256 KiB, whatever is less, but at least one.
struct ResultRing {
  static let mostLines = 1024
  static let mostBytes = 256 * 1024

  private var ring: [[UInt8]] = []
  /// Where the oldest line is, once the ring has gone round.
  private var oldest = 0
  /// Lines that were dropped to keep within the bytes; they come first, and are empty.
  private var dropped = 0
  /// Bytes of all lines.
  private(set) var size = 0

  /// The lines, oldest first.
  var lines: [[UInt8]] { Array((ring[oldest...] + ring[..<oldest]).dropFirst(dropped)) }

  /// Adds a line at the end.
  mutating func append(_ line: [UInt8]) {
    if ring.count < Self.mostLines {
      ring.append(line)
    } else {
      size -= ring[oldest].count
      ring[oldest] = line
      oldest = (oldest + 1) % Self.mostLines
      dropped = max(0, dropped - 1)
    }
    size += line.count
    while size > Self.mostBytes, dropped < ring.count - 1 {
      let place = (oldest + dropped) % ring.count
      size -= ring[place].count
      ring[place] = []
      dropped += 1
    }
  }
}

extension TimeSpec {
  /// A nanosecond later.
  fileprivate var next: TimeSpec {
    nanoseconds == 999_999_999
      ? TimeSpec(seconds: seconds + 1, nanoseconds: 0)
      : TimeSpec(seconds: seconds, nanoseconds: nanoseconds + 1)
  }
}
