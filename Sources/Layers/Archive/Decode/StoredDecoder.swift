import Posix

/// Copies the bytes of an entry that is not compressed.
final class StoredDecoder: EntryDecoder, @unchecked Sendable {
  static let method: UInt16 = 0

  override var cost: Int { 1 << 10 }
  override var verifiesChecksum: Bool { true }

  /// - Throws: EIO if the entry's two sizes differ.
  override init(_ entry: CompressedEntry) throws(Errno) {
    guard entry.node.compressedSize == entry.node.size else { throw .ioError }
    try super.init(entry)
  }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let count = Int(min(UInt64(buffer.count), entry.node.size - position))
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    try entry.source.read(into: part, at: entry.start + position)
    return count
  }
}
