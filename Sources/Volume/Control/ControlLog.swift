import Posix

/// The control file's state in shared memory, for a successor.
struct ControlLog: Sendable {
  /// What an entry records.
  enum Kind: UInt32 {
    /// The `route` commands that make the table.
    case table
    /// A command that changed the table.
    case change
    /// A result, after a `ResultHeader`.
    case result
    /// The reply to a WRITE, as the header of a result, and the lines that are held from then on.
    case reply
    /// A command that was applied, after a `ResultHeader` and a `Moment`; empty for that of the last change.
    case applied
    /// A URL that was posted, or only matched, after a `ResultHeader` and a `Moment`. The table has the route.
    case posted, matched
  }

  /// Where a line that has a result stands in its write(2).
  struct Origin: BitwiseCopyable {
    /// The `unique` of the WRITE request; 0 for none.
    var request: UInt64 = 0
    /// Its first byte in the request, and the one after its last.
    var start: UInt64 = 0
    var end: UInt64 = 0
  }

  struct ResultHeader: BitwiseCopyable {
    var sequence: UInt64 = 0
    var origin = Origin()
    /// The errno with which the line, or the WRITE, was refused; 0 for none.
    var errno: UInt64 = 0
  }

  /// What the line of a result is made of, beside its command.
  struct Moment: BitwiseCopyable {
    var time: TimeSpec
    var listeners: UInt64 = 0
  }

  private struct TimedHeader: BitwiseCopyable {
    let result: ResultHeader
    let moment: Moment
  }

  private static let region = SharedRegions.control
  private static let leastLimit = 4 << 20

  private var log: SharedLog

  init(_ memory: SharedMemory) { log = SharedLog(memory, in: Self.region, leastLimit: Self.leastLimit) }

  var isEmpty: Bool { log.isEmpty }
  var isLong: Bool { log.isLong }

  /// As `SharedLog.append`.
  mutating func append(_ kind: Kind, _ header: ResultHeader? = nil, _ bytes: Span<UInt8>) {
    guard let header else { return log.append(kind.rawValue, bytes) }
    withUnsafeBytes(of: header) { log.append(kind.rawValue, header: $0, bytes) }
  }

  /// Appends a result.
  /// - Parameter isRecorded: whether its text is the change that was appended last.
  mutating func append(
    _ form: RetainedResult.Form, _ header: ResultHeader, _ time: TimeSpec, _ text: Span<UInt8>,
    isRecorded: Bool
  ) {
    var moment = Moment(time: time)
    switch form {
    case .line: append(.result, header, text)
    case .applied: append(.applied, header, moment, isRecorded ? text.extracting(first: 0) : text)
    case .posted(_, let listeners):
      moment.listeners = UInt64(listeners)
      append(.posted, header, moment, text)
    case .matched: append(.matched, header, moment, text)
    }
  }

  private mutating func append(_ kind: Kind, _ header: ResultHeader, _ moment: Moment, _ text: Span<UInt8>) {
    withUnsafeBytes(of: TimedHeader(result: header, moment: moment)) {
      log.append(kind.rawValue, header: $0, text)
    }
  }

  func commit() { log.commit() }

  struct Entry {
    let kind: Kind
    var header: ResultHeader?
    var moment: Moment?
    let bytes: [UInt8]
  }

  /// As `SharedLog.begin`.
  mutating func begin(_ entries: [Entry]) {
    log.begin { append in
      for entry in entries { append(entry.kind.rawValue, Self.encoded(entry.header) + entry.bytes) }
    }
  }

  private static func encoded(_ header: ResultHeader?) -> [UInt8] {
    guard let header else { return [] }
    return withUnsafeBytes(of: header) { Array($0) }
  }

  /// Calls the body with each entry of a predecessor.
  func forEach(_ body: (Entry) -> Void) {
    log.forEach { kind, bytes in
      guard let kind = Kind(rawValue: kind), let entry = Self.entry(kind, bytes) else { return }
      body(entry)
    }
  }

  /// nil if it is too short.
  private static func entry(_ kind: Kind, _ bytes: UnsafeRawBufferPointer) -> Entry? {
    switch kind {
    case .table, .change: return Entry(kind: kind, bytes: Array(bytes))
    case .result, .reply:
      let size = MemoryLayout<ResultHeader>.size
      if bytes.count < size { return nil }
      let header = bytes.loadUnaligned(as: ResultHeader.self)
      return Entry(kind: kind, header: header, bytes: Array(bytes[size...]))
    case .applied, .posted, .matched:
      let size = MemoryLayout<TimedHeader>.size
      if bytes.count < size { return nil }
      let header = bytes.loadUnaligned(as: TimedHeader.self)
      return Entry(kind: kind, header: header.result, moment: header.moment, bytes: Array(bytes[size...]))
    }
  }
}
