import Posix

/// The location of an entry's local file header.
struct LocalHeader: Sendable {
  let source: ArchiveSource
  /// Offset in the file.
  let offset: UInt64
  /// The offset of the central directory, where entries end.
  let end: UInt64
  /// nil in a zip archive.
  let container: Container?

  private static let size = 30
  /// The bytes of name and extra field that a small entry is read with: only the header says how many there are.
  private static let usualNames: UInt64 = 160
  /// Compressed bytes of an entry that is read together with its header.
  static let smallSize: UInt64 = 16 << 10

  /// The offset of the first compressed byte.
  /// - Throws: EIO for a wrong header or a truncated entry; EACCES if only it says that the entry is encrypted.
  func contentStart(of node: ArchiveNode) throws(Errno) -> UInt64 {
    if container != nil { return offset }
    try checkOffset()
    return try withUnsafeTemporaryBytes(Self.size) { bytes throws(Errno) in
      try source.read(into: bytes, at: offset)
      return try contentStart(of: node, UnsafeRawBufferPointer(bytes))
    }
  }

  /// As `contentStart`, but reads a small deflated entry as well.
  func read(with node: ArchiveNode) throws(Errno) -> (start: UInt64, beginning: CompressedBytes?) {
    let isSmall = node.compressedSize <= Self.smallSize && node.method == InflateDecoder.method
    guard isSmall, container == nil else { return (try contentStart(of: node), nil) }
    try checkOffset()
    let count = UInt64(Self.size) + Self.usualNames + node.compressedSize
    let bytes = CompressedBytes(count: Int(min(end - offset, count)))
    try source.read(into: bytes.memory, at: offset)
    let start = try contentStart(of: node, UnsafeRawBufferPointer(bytes.memory))
    bytes.limit(from: Int(start - offset), count: Int(node.compressedSize))
    return (start, bytes)
  }

  /// Has a server send the header, and the beginning of the content, as far as they are not cached.
  /// - Parameter count: bytes of the content.
  func prepare(content count: UInt64) {
    let content = min(count, 1 << 30)
    source.prepare(
      at: offset, count: container == nil ? UInt64(Self.size) + Self.usualNames + content : content)
  }

  private func checkOffset() throws(Errno) {
    guard offset < end, end - offset >= UInt64(Self.size) else { throw .ioError }
  }

  private func contentStart(of node: ArchiveNode, _ bytes: UnsafeRawBufferPointer) throws(Errno) -> UInt64 {
    guard bytes.number(at: 0, as: UInt32.self) == 0x0403_4B50 else { throw .ioError }
    let isEncrypted = bytes.number(at: 6, as: UInt16.self) & 1 != 0
    if isEncrypted, !node.flags.contains(.isEncrypted) { throw .permissionDenied }
    let name = UInt64(bytes.number(at: 26, as: UInt16.self))
    let extra = UInt64(bytes.number(at: 28, as: UInt16.self))
    let start = offset + UInt64(Self.size) + name + extra
    guard start <= end, end - start >= node.compressedSize else { throw .ioError }
    return start
  }
}
