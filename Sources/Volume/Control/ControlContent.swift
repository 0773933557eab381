import Posix
import Routing

/// The text of the control file: a line per route, followed by a line per retained result.
struct ControlContent {
  private(set) var table: RouteTable
  private(set) var sequence: UInt64 = 0
  /// The mtime. It advances with every change so that the kernel drops its cached pages.
  private(set) var modified = TimeSpec.now
  /// nil until it is read.
  private var tableText: [UInt8]?
  private var results: ResultRing
  private var cachedText: [UInt8]?

  init(_ table: RouteTable, maxResults: Int = ControlOptions.defaultResults) {
    self.table = table
    results = ResultRing(lineLimit: maxResults)
  }

  var size: Int { table.textSize + results.size }

  var text: [UInt8] {
    mutating get {
      if let cachedText { return cachedText }
      let tableText = tableText ?? Array(table.text.utf8)
      self.tableText = tableText
      var text = tableText
      text.reserveCapacity(size)
      for index in 0..<results.count { text += results[index] }
      cachedText = text
      return text
    }
  }

  /// The results from a position on, as far as they are kept, in at most so many bytes.
  func page(from position: ResultsProtocol.Position, limit: Int) -> ResultsProtocol.Page {
    let oldest = sequence - UInt64(results.count) + 1
    let first = max(position.sequence, oldest)
    var offset = first == position.sequence ? Int(clamping: position.offset) : 0
    var text: [UInt8] = []
    var next = first
    while next <= sequence, text.count < limit {
      text += results[Int(next - oldest)].dropFirst(offset).prefix(limit - text.count)
      offset = 0
      next += 1
    }
    return ResultsProtocol.Page(first: first, newest: sequence, text: text[...])
  }

  /// Runs the body on the route table and appends its outcome to the results.
  /// - Returns: the error that the body threw; nil on success.
  mutating func record(
    _ line: [UInt8], _ body: (inout RouteTable) throws(RoutingError) -> RouteResult.Outcome
  ) -> RoutingError? {
    var failure: RoutingError?
    let outcome: RouteResult.Outcome
    let version = table.version
    do throws(RoutingError) { outcome = try body(&table) } catch {
      failure = error
      outcome = .rejected(error)
    }
    if table.version != version { tableText = nil }
    sequence += 1
    let time = TimeSpec.now
    let result = RouteResult(
      sequence: sequence, time: Timestamp(seconds: time.seconds, nanoseconds: Int64(time.nanoseconds)),
      url: line, outcome: outcome)
    var line = result.json
    line.append(UInt8(ascii: "\n"))
    results.append(line)
    touch(time)
    cachedText = nil
    return failure
  }

  /// Advances the mtime to the given time, and by at least a nanosecond.
  mutating func touch(_ time: TimeSpec = .now) { modified = max(time, modified.next) }
}

extension TimeSpec {
  fileprivate var next: TimeSpec {
    nanoseconds == 999_999_999
      ? TimeSpec(seconds: seconds + 1, nanoseconds: 0)
      : TimeSpec(seconds: seconds, nanoseconds: nanoseconds + 1)
  }
}
