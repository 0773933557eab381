import Posix

struct CompressedEntry: Sendable {
  let source: ArchiveSource
  /// Offset of the local file header.
  let header: UInt64
  /// Offset of the first compressed byte.
  let start: UInt64
  let node: ArchiveNode
  /// nil in a zip archive.
  let container: Container?
  /// nil if all is yet to be read.
  var beginning: CompressedBytes?
}

/// Decodes one entry from its beginning to its end. Not thread-safe.
class EntryDecoder: @unchecked Sendable {
  let entry: CompressedEntry
  private(set) final var position: UInt64
  /// Where decoding was resumed; 0 if it began with the entry.
  final let resumption: UInt64

  /// The memory of most decoders in bytes, approximately.
  static let usualCost = 192 << 10
  var cost: Int { Self.usualCost }
  /// Whether `read` compares the checksum, since `decode` does not.
  var verifiesChecksum: Bool { false }
  /// Of all bytes up to `position`.
  private final var checksum: UInt32

  init(_ entry: CompressedEntry) throws(Errno) {
    self.entry = entry
    (position, resumption, checksum) = (0, 0, 0)
  }

  /// Creates a decoder that continues where another one is.
  init(resuming other: EntryDecoder) throws(Errno) {
    entry = other.entry
    (position, resumption, checksum) = (other.position, other.position, other.checksum)
  }

  /// The memory of a copy in bytes, approximately.
  var copyCost: Int { 0 }

  /// A decoder that continues where this one is; nil if the decoder cannot be copied, or for lack of memory.
  func copy() -> EntryDecoder? { nil }

  /// Up to where zeros may be skipped: no reader waits for an earlier byte.
  final var goal: UInt64 = 0

  /// Moves over zeros between `position` and `goal` that need not be decoded, since the archive has a hole there. To be
  /// called after `advance`.
  /// - Returns: how many.
  final func skipZeros() throws(Errno) -> UInt64 {
    let count = try passHole()
    if count > 0, verifiesChecksum { checksum = UInt32.crc32(afterZeros: count, checksum) }
    position += count
    return count
  }

  /// Implements `skipZeros`, but for position and checksum.
  func passHole() throws(Errno) -> UInt64 { 0 }

  /// Does a part of the work that precedes the next `read`, in at most a few milliseconds.
  /// - Returns: whether none is left.
  /// - Throws: EIO.
  func advance() throws(Errno) -> Bool { true }

  /// - Returns: the byte count; 0 at the end, once the checksum was verified.
  /// - Throws: EIO for damage and for a wrong size.
  final func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    if buffer.isEmpty { return 0 }
    let count = try decode(into: buffer)
    position += UInt64(count)
    if position > entry.node.size || (count == 0 && position < entry.node.size) { throw .ioError }
    if verifiesChecksum {
      checksum = UnsafeRawBufferPointer(rebasing: buffer[..<count]).crc32(after: checksum)
      if count == 0, checksum != entry.node.crc { throw .ioError }
    }
    return count
  }

  /// Implements `read`, but for the check of the size and, if `verifiesChecksum`, of the checksum.
  func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int { throw .notSupported }
}
