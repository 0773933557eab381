import Posix

/// A file or folder of an archive. There may be millions, so the fields leave no gaps.
struct ArchiveNode {
  /// The number that tells it from all others that the layer ever had.
  var inode: UInt64 = 0
  /// Files: where the entry's own header is. Folders: the node of the first entry, 0 for none.
  var offset: UInt64 = 0
  /// Bytes in the archive.
  var compressedSize: UInt64 = 0
  /// Bytes unpacked.
  var size: UInt64 = 0
  /// Nanoseconds since the epoch.
  var modified: Int64 = 0
  var crc: UInt32 = 0
  /// Where the index's names have the name.
  var name: UInt32 = 0
  var parent: UInt32 = 0
  /// The next entry of the same folder, 0 for none.
  var next: UInt32 = 0
  /// As in st_mode.
  var mode: UInt16 = 0
  var method: UInt16 = 0
  var nameLength: UInt8 = 0
  var flags: Flags = []

  struct Flags: OptionSet {
    let rawValue: UInt8
    static let isEncrypted = Flags(rawValue: 1)
    /// Of folders: whether the archive has an entry for it.
    static let isExplicit = Flags(rawValue: 2)
    /// Whether another entry begins before its end.
    static let isOverlapping = Flags(rawValue: 4)
    /// The bit of the record that a method may look at: bit 1.
    static let hasEndMarker = Flags(rawValue: 8)
  }

  var isFolder: Bool { UInt32(mode) & 0o170000 == FileKind.directory.rawValue }
  var kind: FileKind { FileKind(rawValue: UInt32(mode) & 0o170000) ?? .regular }

  /// Whether two nodes of one path have the same content, as far as the archive tells.
  func hasSameContent(as other: ArchiveNode) -> Bool {
    kind == other.kind && crc == other.crc && size == other.size && method == other.method
      && compressedSize == other.compressedSize
      && flags.subtracting(.isOverlapping) == other.flags.subtracting(.isOverlapping)
  }

  /// Whether two nodes of one path look the same to stat(2).
  func hasSameAttributes(as other: ArchiveNode) -> Bool {
    mode == other.mode && modified == other.modified
  }

  /// The time of the last change.
  var modificationTime: TimeSpec {
    let (seconds, rest) = modified.quotientAndRemainder(dividingBy: 1_000_000_000)
    return rest < 0
      ? TimeSpec(seconds: seconds - 1, nanoseconds: UInt32(rest + 1_000_000_000))
      : TimeSpec(seconds: seconds, nanoseconds: UInt32(rest))
  }
}
