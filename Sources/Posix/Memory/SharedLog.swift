import Synchronization

/// A log in shared memory, begun again with the present state when it has grown long.
///
/// There are two halves of the memory. What is appended counts once `position`, which names the half and its end, is
/// written, so that a successor finds whole entries whenever the writer dies.
public struct SharedLog: @unchecked Sendable {
  private static let halfBit: UInt64 = 1 << 63
  /// The first entry's place in the memory, after `position`.
  private static let head = 4096

  private let start: UnsafeMutableRawPointer
  private let halfSize: Int
  private let position: UnsafeMutablePointer<UInt64>
  /// The end of what is appended, and not yet committed.
  private var end: Int
  /// The size at which it is begun again.
  private var limit: Int
  private let leastLimit: Int

  /// - Parameters:
  ///   - range: its bytes in the memory, which are zero or what a predecessor has written.
  ///   - leastLimit: the size in bytes from which on it is begun again, at least.
  public init(_ memory: SharedMemory, in range: Range<Int>, leastLimit: Int) {
    start = memory.base + range.lowerBound + Self.head
    halfSize = (range.count - Self.head) / 2 & ~7
    position = memory.values(of: UInt64.self, at: range.lowerBound)
    end = Int(position.pointee & ~Self.halfBit)
    self.leastLimit = leastLimit
    limit = leastLimit
  }

  private func half(_ position: UInt64) -> UnsafeMutableRawPointer {
    start + (position & Self.halfBit == 0 ? 0 : halfSize)
  }

  /// Whether nothing was ever recorded.
  public var isEmpty: Bool { position.pointee == 0 }

  /// Whether it should be begun again.
  public var isLong: Bool { end > limit }

  /// Appends an entry of a header and its bytes, which counts from the next `commit` on. What has no room is left out.
  public mutating func append(_ kind: UInt32, header: UnsafeRawBufferPointer? = nil, _ bytes: Span<UInt8>) {
    end = write(kind, header, bytes, to: half(position.pointee), at: end)
  }

  /// Makes what was appended count.
  public func commit() {
    atomicMemoryFence(ordering: .releasing)
    position.pointee = position.pointee & Self.halfBit | UInt64(end)
  }

  /// Begins it again in the other half, with the entries that the body appends.
  public mutating func begin(_ body: (_ append: (UInt32, [UInt8]) -> Void) -> Void) {
    let other = ~position.pointee & Self.halfBit
    var end = 0
    body { kind, bytes in end = write(kind, nil, bytes.span, to: half(other), at: end) }
    atomicMemoryFence(ordering: .releasing)
    position.pointee = other | UInt64(end)
    self.end = end
    limit = max(leastLimit, 4 * end)
  }

  private func write(
    _ kind: UInt32, _ header: UnsafeRawBufferPointer?, _ bytes: Span<UInt8>,
    to start: UnsafeMutableRawPointer,
    at offset: Int
  ) -> Int {
    let headerSize = header?.count ?? 0
    let size = 8 + headerSize + bytes.count
    let end = (offset + size + 7) & ~7
    if end > halfSize { return offset }
    let entry = start + offset
    entry.storeBytes(of: UInt32(size), as: UInt32.self)
    entry.storeBytes(of: kind, toByteOffset: 4, as: UInt32.self)
    if let address = header?.baseAddress { (entry + 8).copyMemory(from: address, byteCount: headerSize) }
    bytes.withUnsafeBytes { source in
      guard let address = source.baseAddress else { return }
      (entry + 8 + headerSize).copyMemory(from: address, byteCount: bytes.count)
    }
    return end
  }

  /// Calls the body with each entry.
  public func forEach(_ body: (_ kind: UInt32, _ bytes: UnsafeRawBufferPointer) -> Void) {
    var offset = 0
    let end = Int(position.pointee & ~Self.halfBit)
    while offset + 8 <= end {
      let entry = half(position.pointee) + offset
      let size = Int(entry.load(as: UInt32.self))
      guard size >= 8, offset + size <= end else { return }
      body(
        entry.load(fromByteOffset: 4, as: UInt32.self),
        UnsafeRawBufferPointer(start: entry + 8, count: size - 8))
      offset = (offset + size + 7) & ~7
    }
  }
}
