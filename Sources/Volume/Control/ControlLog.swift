import Posix
import Synchronization

/// The control file's state in shared memory, for a successor: a log of what has changed, begun again with the present
/// state when it has grown long.
///
/// There are two halves of the memory. What is appended counts once `position`, which names the half and its end, is
/// written, so that a successor finds whole entries whenever the writer dies.
struct ControlLog: @unchecked Sendable {
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

  private static let (positionPlace, halves, halfSize) = (16 << 20, 64 << 20, 448 << 20)
  private static let halfBit: UInt64 = 1 << 63
  /// The size from which on the log is begun again, at least.
  private static let leastLimit = 4 << 20

  private let memory: SharedMemory
  private let position: UnsafeMutablePointer<UInt64>
  /// The end of what is appended, and not yet committed.
  private var end: Int
  /// The size at which it is begun again.
  private var limit = leastLimit

  init(_ memory: SharedMemory) {
    self.memory = memory
    position = memory.values(of: UInt64.self, at: Self.positionPlace)
    end = Int(position.pointee & ~Self.halfBit)
  }

  private var half: UnsafeMutableRawPointer {
    memory.base + Self.halves + (position.pointee & Self.halfBit == 0 ? 0 : Self.halfSize)
  }

  /// Whether nothing was ever recorded.
  var isEmpty: Bool { position.pointee == 0 }

  /// Whether it should be begun again.
  var isLong: Bool { end > limit }

  // MARK: - Writing

  /// Appends an entry, which counts from the next `commit` on. What has no room is left out.
  mutating func append(_ kind: Kind, _ header: ResultHeader? = nil, _ bytes: [UInt8]) {
    end = Self.write(kind, header, bytes, to: half, at: end)
  }

  func commit() {
    atomicMemoryFence(ordering: .releasing)
    position.pointee = position.pointee & Self.halfBit | UInt64(end)
  }

  /// Begins it again in the other half, with the entries that the body appends.
  mutating func begin(_ body: (_ append: (Kind, ResultHeader?, [UInt8]) -> Void) -> Void) {
    let other = ~position.pointee & Self.halfBit
    let start = memory.base + Self.halves + (other == 0 ? 0 : Self.halfSize)
    var end = 0
    body { kind, header, bytes in end = Self.write(kind, header, bytes, to: start, at: end) }
    atomicMemoryFence(ordering: .releasing)
    position.pointee = other | UInt64(end)
    self.end = end
    limit = max(Self.leastLimit, 4 * end)
  }

  private static func write(
    _ kind: Kind, _ header: ResultHeader?, _ bytes: [UInt8], to start: UnsafeMutableRawPointer, at offset: Int
  ) -> Int {
    let headerSize = header == nil ? 0 : MemoryLayout<ResultHeader>.size
    let size = 8 + headerSize + bytes.count
    let end = (offset + size + 7) & ~7
    if end > halfSize { return offset }
    let entry = start + offset
    entry.storeBytes(of: UInt32(size), as: UInt32.self)
    entry.storeBytes(of: kind.rawValue, toByteOffset: 4, as: UInt32.self)
    if let header { entry.storeBytes(of: header, toByteOffset: 8, as: ResultHeader.self) }
    bytes.withUnsafeBytes { source in
      if let address = source.baseAddress {
        (entry + 8 + headerSize).copyMemory(from: address, byteCount: bytes.count)
      }
    }
    return end
  }

  // MARK: - Reading

  /// Calls the body with each entry of a predecessor.
  func forEach(_ body: (Kind, ResultHeader?, [UInt8]) -> Void) {
    var offset = 0
    let end = Int(position.pointee & ~Self.halfBit)
    while offset + 8 <= end {
      let entry = half + offset
      let size = Int(entry.load(as: UInt32.self))
      guard size >= 8, offset + size <= end,
        let kind = Kind(rawValue: entry.load(fromByteOffset: 4, as: UInt32.self))
      else { return }
      let hasHeader = kind == .result || kind == .reply
      let headerSize = hasHeader ? MemoryLayout<ResultHeader>.size : 0
      if size < 8 + headerSize { return }
      let header = hasHeader ? entry.load(fromByteOffset: 8, as: ResultHeader.self) : nil
      let bytes = UnsafeRawBufferPointer(start: entry + 8 + headerSize, count: size - 8 - headerSize)
      body(kind, header, Array(bytes))
      offset = (offset + size + 7) & ~7
    }
  }
}
