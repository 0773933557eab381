import Posix
import Routing

/// The text of the control file: a line per route, followed by a line per retained result.
struct ControlContent {
  private(set) var table: RouteTable
  private(set) var sequence: UInt64 = 0
  /// The mtime. It advances with every change so that the kernel drops its cached pages.
  private(set) var modified = TimeSpec.now
  private var tableText: [UInt8]
  private var results = ResultRing()
  private var cachedText: [UInt8]?

  init(_ table: RouteTable) {
    self.table = table
    tableText = Array(table.text.utf8)
  }

  var size: Int { tableText.count + results.size }

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

  /// Runs the body on the route table and appends its outcome to the results.
  /// - Returns: the error that the body threw; nil on success.
  mutating func record(
    _ line: [UInt8], _ body: (inout RouteTable) throws(RoutingError) -> RouteResult.Outcome
  ) -> RoutingError? {
    var failure: RoutingError?
    let outcome: RouteResult.Outcome
    let routeCount = table.count
    do throws(RoutingError) { outcome = try body(&table) } catch {
      failure = error
      outcome = .rejected(error)
    }
    updateTableText(formerCount: routeCount)
    sequence += 1
    let time = TimeSpec.now
    let result = RouteResult(
      sequence: sequence, time: Timestamp(seconds: time.seconds, nanoseconds: Int64(time.nanoseconds)),
      url: line, outcome: outcome)
    results.append(result.json + [UInt8(ascii: "\n")])
    touch(time)
    cachedText = nil
    return failure
  }

  /// One new route only adds its line, so that registering many takes time in proportion to them.
  private mutating func updateTableText(formerCount: Int) {
    if table.count == formerCount + 1, let route = table.last {
      tableText += "\(route)\n".utf8
    } else if table.count != formerCount {
      tableText = Array(table.text.utf8)
    }
  }

  /// Advances the mtime to the given time, and by at least a nanosecond.
  mutating func touch(_ time: TimeSpec = .now) { modified = max(time, modified.next) }
}

/// A ring buffer of the last results, limited to 1,024 lines and 256 KiB but always holding the newest line.
struct ResultRing {
  static let lineLimit = 1024
  static let byteLimit = 256 * 1024

  private var ring: [[UInt8]] = []
  /// The index of the oldest line, once the ring has wrapped.
  private var oldest = 0
  /// How many of the oldest lines were emptied to stay within `byteLimit`.
  private var dropped = 0
  private(set) var size = 0

  var lines: [[UInt8]] { Array((ring[oldest...] + ring[..<oldest]).dropFirst(dropped)) }

  mutating func append(_ line: [UInt8]) {
    if ring.count < Self.lineLimit {
      ring.append(line)
    } else {
      size -= ring[oldest].count
      ring[oldest] = line
      oldest = (oldest + 1) % Self.lineLimit
      dropped = max(0, dropped - 1)
    }
    size += line.count
    while size > Self.byteLimit, dropped < ring.count - 1 {
      let index = (oldest + dropped) % ring.count
      size -= ring[index].count
      ring[index] = []
      dropped += 1
    }
  }
}

extension TimeSpec {
  fileprivate var next: TimeSpec {
    nanoseconds == 999_999_999
      ? TimeSpec(seconds: seconds + 1, nanoseconds: 0)
      : TimeSpec(seconds: seconds, nanoseconds: nanoseconds + 1)
  }
}
