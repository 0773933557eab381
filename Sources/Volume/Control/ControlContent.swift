import Containers
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
  /// Where a successor finds all this; nil if none is to come.
  private var log: ControlLog?
  /// The headers of the last results, oldest first: a line among them may be of a WRITE that has no reply yet.
  private var headers: [ControlLog.ResultHeader] = []
  /// The last replies, oldest first: the process may die before the kernel has one.
  private var lastReplies: [ControlLog.ResultHeader] = []
  /// How many of both are kept, at least.
  private static let keptHeaders = 256
  /// The encoded lines that are held.
  private(set) var held: [UInt8] = []

  /// - Parameter log: what a predecessor has recorded there is restored.
  init(_ table: RouteTable, maxResults: Int = ControlOptions.defaultResults, log: ControlLog? = nil) {
    self.table = table
    results = ResultRing(lineLimit: maxResults)
    self.log = log
    if let log, !log.isEmpty { restore(from: log) } else { beginLog() }
  }

  var size: Int {
    mutating get {
      results.makeLines()
      return table.textSize + results.size
    }
  }

  var text: [UInt8] {
    mutating get {
      if let cachedText { return cachedText }
      let tableText = tableText ?? table.textBytes
      self.tableText = tableText
      var text = tableText
      text.reserveCapacity(size)
      for index in 0..<results.count { text += results[index].text }
      cachedText = text
      return text
    }
  }

  /// The results from a position on, as far as they are kept, in at most so many bytes.
  mutating func page(from position: ResultsProtocol.Position, limit: Int) -> ResultsProtocol.Page {
    results.makeLines()
    let oldest = sequence - UInt64(results.count) + 1
    let first = max(position.sequence, oldest)
    var offset = first == position.sequence ? Int(clamping: position.offset) : 0
    var text: [UInt8] = []
    var next = first
    while next <= sequence, text.count < limit {
      text += results[Int(next - oldest)].text.dropFirst(offset).prefix(limit - text.count)
      offset = 0
      next += 1
    }
    return ResultsProtocol.Page(first: first, newest: sequence, text: text[...])
  }

  /// Runs the body on the route table and appends its outcome to the results.
  /// - Parameter command: the line as its result shows it.
  /// - Returns: the error that the body threw; nil on success.
  mutating func record(
    _ command: Span<UInt8>, _ origin: ControlLog.Origin = ControlLog.Origin(),
    _ body: (inout RouteTable) throws(RoutingError) -> LineOutcome
  ) -> RoutingError? {
    let version = table.version
    sequence += 1
    let time = TimeSpec.now
    var failure: RoutingError?
    var line: [UInt8] = []
    let form: RetainedResult.Form
    do throws(RoutingError) {
      let outcome = try body(&table)
      form = RetainedResult.Form(outcome)
      if case .line = form {
        let command = [UInt8](command)
        line = RetainedResult.line(sequence, time, command, outcome.result(of: command))
      }
    } catch {
      failure = error
      form = .line
      line = RetainedResult.line(sequence, time, [UInt8](command), .rejected(error))
    }
    touch(time)
    cachedText = nil
    if table.version != version {
      tableText = nil
      log?.append(.change, nil, command)
    }
    var header = ControlLog.ResultHeader(sequence: sequence, origin: origin)
    header.errno = UInt64(failure?.code.errno.rawValue ?? 0)
    if case .line = form {
      append(line.span, as: form, header, time, isRecorded: false)
    } else {
      append(command, as: form, header, time, isRecorded: table.version != version)
    }
    return failure
  }

  /// - Parameter isRecorded: whether the log has the text as that of the last change.
  private mutating func append(
    _ text: Span<UInt8>, as form: RetainedResult.Form, _ header: ControlLog.ResultHeader, _ time: TimeSpec,
    isRecorded: Bool
  ) {
    results.append(header.sequence, time, text, as: form)
    if log == nil { return }
    headers.append(header)
    if headers.count > 2 * Self.keptHeaders { headers.removeFirst(Self.keptHeaders) }
    log?.append(form, header, time, text, isRecorded: isRecorded)
    log?.commit()
    if log?.isLong == true { beginLog() }
  }

  // MARK: - Log

  /// Records the reply to a WRITE, and the lines that are held from then on.
  mutating func record(_ reply: ControlLog.ResultHeader, held: [UInt8]) {
    if log == nil { return }
    self.held = held
    lastReplies.append(reply)
    if lastReplies.count > 2 * Self.keptHeaders { lastReplies.removeFirst(Self.keptHeaders) }
    log?.append(.reply, reply, held.span)
    log?.commit()
    if log?.isLong == true { beginLog() }
  }

  private mutating func beginLog() {
    if log == nil { return }
    var entries = [ControlLog.Entry(kind: .table, bytes: table.textBytes)]
    for reply in lastReplies { entries.append(ControlLog.Entry(kind: .reply, header: reply, bytes: [])) }
    entries.append(ControlLog.Entry(kind: .reply, header: ControlLog.ResultHeader(), bytes: held))
    results.makeLines()
    let first = sequence - UInt64(results.count) + 1
    for index in 0..<results.count {
      let number = first + UInt64(index)
      let place = headers.count - Int(sequence - number) - 1
      let header =
        headers.indices.contains(place) ? headers[place] : ControlLog.ResultHeader(sequence: number)
      entries.append(ControlLog.Entry(kind: .result, header: header, bytes: results[index].text))
    }
    log?.begin(entries)
  }

  private mutating func restore(from log: ControlLog) {
    var change: [UInt8] = []
    log.forEach { entry in
      switch entry.kind {
      case .table:
        table.removeAll()
        for line in entry.bytes.split(separator: UInt8(ascii: "\n")) { apply(Array(line)) }
      case .change:
        change = entry.bytes
        apply(change)
      case .reply:
        held = entry.bytes
        if let header = entry.header { lastReplies.append(header) }
      case .result, .applied, .posted, .matched:
        if let header = entry.header { append(entry, header, after: change) }
      }
    }
    headers.removeFirst(max(0, headers.count - Self.keptHeaders))
    lastReplies.removeFirst(max(0, lastReplies.count - Self.keptHeaders))
  }

  /// Appends the result of an entry, before which the table has had its last change.
  private mutating func append(
    _ entry: ControlLog.Entry, _ header: ControlLog.ResultHeader, after change: [UInt8]
  ) {
    sequence = header.sequence
    headers.append(header)
    let time = entry.moment?.time ?? TimeSpec(seconds: 0, nanoseconds: 0)
    let text = entry.bytes.isEmpty ? change : entry.bytes
    results.append(sequence, time, text.span, as: form(of: entry, text))
  }

  private func form(of entry: ControlLog.Entry, _ text: [UInt8]) -> RetainedResult.Form {
    switch entry.kind {
    case .result: return .line
    case .posted, .matched:
      guard let route = try? table.find(RouteURL(text)) else { return .applied }
      let listeners = Int(clamping: entry.moment?.listeners ?? 0)
      return entry.kind == .posted ? .posted(route, listeners: listeners) : .matched(route)
    case .applied, .table, .change, .reply: return .applied
    }
  }

  private mutating func apply(_ line: [UInt8]) {
    guard let command = try? ControlCommand(line) else { return }
    _ = try? table.change(command)
  }

  /// What a predecessor has done of a request that is there again.
  func progress(of request: UInt64) -> ControlLog.ResultHeader? {
    headers.last { $0.origin.request == request }
  }

  /// What a predecessor has replied, if the request is there again.
  func reply(to request: UInt64) -> ControlLog.ResultHeader? {
    lastReplies.last { $0.origin.request == request }
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
