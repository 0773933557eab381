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

  private static let place = SurvivalPlaces.control
  private static let leastLimit = 4 << 20

  private var log: SharedLog

  init(_ memory: SharedMemory) { log = SharedLog(memory, in: Self.place, leastLimit: Self.leastLimit) }

  var isEmpty: Bool { log.isEmpty }
  var isLong: Bool { log.isLong }

  /// As `SharedLog.append`.
  mutating func append(_ kind: Kind, _ header: ResultHeader? = nil, _ bytes: [UInt8]) {
    guard let header else { return log.append(kind.rawValue, bytes) }
    withUnsafeBytes(of: header) { log.append(kind.rawValue, header: $0, bytes) }
  }

  func commit() { log.commit() }

  struct Entry {
    let kind: Kind
    var header: ResultHeader?
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
  func forEach(_ body: (Kind, ResultHeader?, [UInt8]) -> Void) {
    let size = MemoryLayout<ResultHeader>.size
    log.forEach { kind, bytes in
      guard let kind = Kind(rawValue: kind) else { return }
      guard kind == .result || kind == .reply else { return body(kind, nil, Array(bytes)) }
      if bytes.count < size { return }
      body(kind, bytes.loadUnaligned(as: ResultHeader.self), Array(bytes[size...]))
    }
  }
}
