import Posix

/// A file or folder of an archive. There may be millions, so the fields leave no gaps.
struct ArchiveNode {
  var size: UInt64 = 0
  /// Nanoseconds since the epoch.
  var modified: Int64 = 0
  var crc: UInt32 = 0
  /// The offset of the name in the tree's names.
  var name: UInt32 = 0
  var parent: UInt32 = 0
  /// The next child of the same folder, 0 for none.
  var next: UInt32 = 0
  private var packedInode = UInt48()
  private var packedOffset = UInt48()
  private var packedCompressedSize = UInt48()
  /// As `st_mode`.
  var mode: UInt16 = 0
  private var packedMethod: UInt8 = 0
  /// Files: the further names of the same file, at most 255. While an index is built, whether there may be any.
  var otherNames: UInt8 = 0
  var nameLength: UInt8 = 0
  var flags: Flags = []

  /// Never reused in the layer.
  var inode: UInt64 {
    get { packedInode.value }
    set { packedInode = UInt48(clamping: newValue) }
  }
  /// Files: the offset of the local file header; one that is clamped is beyond any archive. Folders: the first child, 0
  /// for none.
  var offset: UInt64 {
    get { packedOffset.value }
    set { packedOffset = UInt48(clamping: newValue) }
  }
  /// One that is clamped exceeds any archive.
  var compressedSize: UInt64 {
    get { packedCompressedSize.value }
    set { packedCompressedSize = UInt48(clamping: newValue) }
  }

  /// One that is clamped to 255 is none of zip's.
  var method: UInt16 {
    get { UInt16(packedMethod) }
    set { packedMethod = UInt8(clamping: newValue) }
  }

  struct Flags: OptionSet {
    let rawValue: UInt8
    static let isEncrypted = Flags(rawValue: 1)
    /// Folders: whether the archive has an entry for it.
    static let isExplicit = Flags(rawValue: 2)
    /// Whether another entry begins before its end.
    static let isOverlapping = Flags(rawValue: 4)
    /// Bit 1 of the general purpose flags: LZMA's end marker.
    static let hasEndMarker = Flags(rawValue: 8)
    /// Whether the archive is none of zip's.
    static let isInContainer = Flags(rawValue: 32)
    /// Whether nothing but the archive's status shows that content is unchanged.
    static let hasNoChecksum = Flags(rawValue: 64)
  }

  /// Whether the content is in the archive as it is.
  var isStored: Bool { method == 0 && !flags.contains(.isEncrypted) }
  var isFolder: Bool { UInt32(mode) & 0o170000 == FileKind.directory.rawValue }
  /// Whether it is a device, whose number `crc` is.
  var isDevice: Bool { kind == .characterDevice || kind == .blockDevice }
  var kind: FileKind { FileKind(rawValue: UInt32(mode) & 0o170000) ?? .regular }

  /// Whether all content before it has to be decoded first.
  var isSequential: Bool { flags.contains(.isInContainer) && method == Container.sequential }
  var hasChecksum: Bool { !flags.contains(.hasNoChecksum) }

  /// Whether two nodes of one path have the same content, as far as the index shows.
  func hasSameContent(as other: ArchiveNode) -> Bool {
    // Encrypted entries may come without a checksum.
    let isUnknown = flags.contains(.isEncrypted) && crc == 0 && size > 0
    return !isUnknown && kind == other.kind && crc == other.crc && size == other.size
      && method == other.method
      && compressedSize == other.compressedSize && (hasChecksum || modified == other.modified)
      && flags.subtracting(.isOverlapping) == other.flags.subtracting(.isOverlapping)
  }

  /// Whether two nodes of one path have the same `stat(2)` attributes.
  func hasSameAttributes(as other: ArchiveNode) -> Bool {
    mode == other.mode && modified == other.modified && otherNames == other.otherNames
  }

  var modificationTime: TimeSpec {
    let (seconds, rest) = modified.quotientAndRemainder(dividingBy: 1_000_000_000)
    return rest < 0
      ? TimeSpec(seconds: seconds - 1, nanoseconds: UInt32(rest + 1_000_000_000))
      : TimeSpec(seconds: seconds, nanoseconds: UInt32(rest))
  }
}

/// A number of 48 bits, which takes six bytes in a structure.
struct UInt48 {
  private var low: UInt16 = 0
  private var middle: UInt16 = 0
  private var high: UInt16 = 0

  static let max: UInt64 = 1 << 48 - 1

  init(clamping value: UInt64 = 0) {
    let value = min(value, Self.max)
    low = UInt16(truncatingIfNeeded: value)
    middle = UInt16(truncatingIfNeeded: value >> 16)
    high = UInt16(truncatingIfNeeded: value >> 32)
  }

  var value: UInt64 { UInt64(high) << 32 | UInt64(middle) << 16 | UInt64(low) }
}
