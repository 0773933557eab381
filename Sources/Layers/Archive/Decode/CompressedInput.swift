import Posix

/// Reads the compressed bytes of an entry piece by piece.
struct CompressedInput: ~Copyable {
  private let entry: CompressedEntry
  /// How many bytes were read.
  private(set) var offset: UInt64
  /// nil before the first piece.
  private var buffer: UnsafeMutableRawBufferPointer?

  private static let pieceSize: UInt64 = 64 << 10

  init(_ entry: CompressedEntry, from offset: UInt64 = 0) {
    self.entry = entry
    self.offset = offset
  }

  deinit { buffer?.deallocate() }

  var isAtEnd: Bool { offset == entry.node.compressedSize }

  /// - Returns: bytes that are valid until the next call; none at the end.
  /// - Throws: EIO if the archive ends before.
  mutating func next() throws(Errno) -> UnsafeRawBufferPointer {
    if offset == 0, let beginning = entry.beginning?.bytes, !beginning.isEmpty {
      offset = UInt64(beginning.count)
      return beginning
    }
    let count = Int(min(Self.pieceSize, entry.node.compressedSize - offset))
    if count == 0 { return UnsafeRawBufferPointer(start: nil, count: 0) }
    let buffer = buffer ?? .allocate(byteCount: count, alignment: 16)
    self.buffer = buffer
    let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    try entry.source.read(into: piece, at: entry.start + offset)
    offset += UInt64(count)
    return UnsafeRawBufferPointer(piece)
  }
}

/// Bytes from the beginning of a compressed entry, which were read with its header.
final class CompressedBytes: @unchecked Sendable {
  let memory: UnsafeMutableRawBufferPointer
  private var range = 0..<0

  init(count: Int) { memory = .allocate(byteCount: count, alignment: 16) }

  deinit { memory.deallocate() }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[range]) }

  /// Sets where the compressed bytes are, before others use them. They may exceed what was read.
  func limit(from start: Int, count: Int) {
    range = min(start, memory.count)..<min(start + count, memory.count)
  }
}
