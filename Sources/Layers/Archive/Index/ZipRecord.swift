import Posix

/// A record of the central directory. It refers to the bytes from which it was created.
struct ZipRecord: ArchiveRecord {
  static let signature: UInt32 = 0x0201_4B50
  private static let fixedSize = 46

  let length: Int
  let name: UnsafeRawBufferPointer
  let flags: UInt16
  let method: UInt16
  let crc: UInt32
  private(set) var compressedSize: UInt64
  private(set) var size: UInt64
  /// The offset of the local file header, without the prefix before the archive.
  private(set) var offset: UInt64
  private let madeBy: UInt8
  /// Whether the name has the form of a folder's.
  var isNamedAsFolder: Bool
  private let externalAttributes: UInt32
  private let extra: UnsafeRawBufferPointer
  private let dosTime: UInt16
  private let dosDate: UInt16
  private(set) var attributes: UInt32 = 0
  private var modeBits = ArchiveOwners.mounter.modeBits

  /// - Parameter isLast: whether no more bytes follow.
  /// - Returns: nil if the record is incomplete and more bytes follow, or at the end.
  init?(_ bytes: UnsafeRawBufferPointer, isLast: Bool) throws(ArchiveError) {
    if bytes.isEmpty { return nil }
    if bytes.count < Self.fixedSize {
      // The rest may be a digital signature.
      if isLast, bytes.count < 4 || bytes.number(at: 0, as: UInt32.self) == Self.signature {
        throw .damaged("its table of contents ends in the middle")
      }
      return nil
    }
    guard bytes.number(at: 0, as: UInt32.self) == Self.signature else {
      // The digital signature ends the central directory.
      if bytes.number(at: 0, as: UInt32.self) == 0x0505_4B50 { return nil }
      throw .damaged("its table of contents has no entry where one should be")
    }
    let nameLength = Int(bytes.number(at: 28, as: UInt16.self))
    let extraLength = Int(bytes.number(at: 30, as: UInt16.self))
    let commentLength = Int(bytes.number(at: 32, as: UInt16.self))
    length = Self.fixedSize + nameLength + extraLength + commentLength
    guard length <= bytes.count else {
      if isLast { throw .damaged("its table of contents ends in the middle") }
      return nil
    }
    madeBy = bytes[5]
    flags = bytes.number(at: 8, as: UInt16.self)
    method = bytes.number(at: 10, as: UInt16.self)
    dosTime = bytes.number(at: 12, as: UInt16.self)
    dosDate = bytes.number(at: 14, as: UInt16.self)
    crc = bytes.number(at: 16, as: UInt32.self)
    compressedSize = UInt64(bytes.number(at: 20, as: UInt32.self))
    size = UInt64(bytes.number(at: 24, as: UInt32.self))
    externalAttributes = bytes.number(at: 38, as: UInt32.self)
    offset = UInt64(bytes.number(at: 42, as: UInt32.self))
    let extraStart = Self.fixedSize + nameLength
    name = UnsafeRawBufferPointer(rebasing: bytes[Self.fixedSize..<extraStart])
    extra = UnsafeRawBufferPointer(rebasing: bytes[extraStart..<extraStart + extraLength])
    isNamedAsFolder = name.last == EntryName.slash
    widen()
  }

  /// Replaces sentinels by the 64-bit numbers of the zip64 field.
  private mutating func widen() {
    let sentinel: UInt64 = 0xFFFF_FFFF
    guard size == sentinel || compressedSize == sentinel || offset == sentinel, let field = field(0x0001)
    else { return }
    var position = 0
    func next(_ present: UInt64) -> UInt64 {
      guard present == sentinel, position + 8 <= field.count else { return present }
      defer { position += 8 }
      return field.number(at: position, as: UInt64.self)
    }
    size = next(size)
    compressedSize = next(compressedSize)
    offset = next(offset)
  }

  /// The content of the first extra field with this id.
  private func field(_ number: UInt16) -> UnsafeRawBufferPointer? {
    var position = 0
    while position + 4 <= extra.count {
      let count = Int(extra.number(at: position + 2, as: UInt16.self))
      guard position + 4 + count <= extra.count else { return nil }
      if extra.number(at: position, as: UInt16.self) == number {
        return UnsafeRawBufferPointer(rebasing: extra[position + 4..<position + 4 + count])
      }
      position += 4 + count
    }
    return nil
  }

  /// Whether the entry was made on DOS, OS/2 or Windows, whose names have no backslash ("version made by": FAT, HPFS, NTFS
  /// by APPNOTE.TXT and by Info-ZIP, VFAT).
  var isMadeOnWindows: Bool { [0, 6, 10, 11, 14].contains(madeBy) }

  var isEncrypted: Bool { flags & (1 << 0 | 1 << 6 | 1 << 13) != 0 }

  /// Serves the owner in Info-ZIP's field: a version, and two numbers with their lengths before them.
  mutating func takeOwner(_ owners: ArchiveOwners, _ table: inout ArchivedAttributeTable) {
    modeBits = owners.modeBits & 0o1777
    guard let field = field(0x7875), field.count >= 3, field[0] == 1,
      let owner = Self.number(in: field, at: 1), let group = Self.number(in: field, at: 2 + Int(field[1])),
      let found = ArchivedAttributes(owner: owner, group: group)
    else { return }
    modeBits = owners.modeBits
    attributes = table.number(of: found)
  }

  /// A little-endian number behind its length; nil if it is cut off, or of more than 32 bits.
  private static func number(in field: UnsafeRawBufferPointer, at position: Int) -> Int64? {
    guard position < field.count, case let count = Int(field[position]), 1...8 ~= count,
      position + 1 + count <= field.count
    else { return nil }
    let bytes = field[(position + 1)..<(position + 1 + count)]
    guard bytes.dropFirst(4).allSatisfy({ $0 == 0 }) else { return nil }
    return bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int64($1) }
  }

  /// `st_mode`, without devices, as by `unzip(1)`.
  var mode: UInt32 {
    // Unix and macOS.
    let isUnix = madeBy == 3 || madeBy == 19
    let unix = isUnix ? externalAttributes >> 16 : 0
    let kind = unix & 0o170000
    if isNamedAsFolder || (kind == FileKind.directory.rawValue && size == 0) {
      return FileKind.directory.rawValue | (unix != 0 ? unix & modeBits : 0o755)
    }
    // `PATH_MAX` bounds the target of a link.
    if kind == FileKind.symbolicLink.rawValue, size > 0, size < 4096 {
      return FileKind.symbolicLink.rawValue | 0o777
    }
    let isReadOnly = !isUnix && externalAttributes & 1 != 0
    let permissions = unix != 0 ? unix & modeBits : isReadOnly ? 0o444 : 0o644
    return FileKind.regular.rawValue | permissions
  }

  /// The mtime in nanoseconds since the epoch: from the extra fields of Info-ZIP, of older Unix programs or
  /// of NTFS, and otherwise the local DOS time. Info-ZIP's whole seconds take their fraction from NTFS's field, if that
  /// is the same time.
  func modified(_ clock: inout DOSTime) -> Int64 {
    if let field = field(0x5455), field.count >= 5, field[0] & 1 != 0 {
      let seconds = Int64(field.number(at: 1, as: Int32.self))
      if let precise = windowsTime, precise >= 0, precise / 1_000_000_000 == seconds { return precise }
      return seconds * 1_000_000_000
    }
    for number in [0x5855, 0x000D] as [UInt16] {
      if let field = field(number), field.count >= 8 {
        return Int64(field.number(at: 4, as: Int32.self)) * 1_000_000_000
      }
    }
    return windowsTime ?? clock.nanoseconds(date: dosDate, time: dosTime)
  }

  /// The mtime of NTFS's field, in nanoseconds since the epoch.
  private var windowsTime: Int64? {
    guard let field = field(0x000A), field.count >= 16, field.number(at: 4, as: UInt16.self) == 1 else {
      return nil
    }
    // In 100 ns since 1601.
    let ticks = Int64(clamping: field.number(at: 8, as: UInt64.self))
    let (nanoseconds, overflows) = (ticks - 116_444_736_000_000_000).multipliedReportingOverflow(by: 100)
    return overflows ? nil : nanoseconds
  }

  func node(_ clock: inout DOSTime) -> ArchiveNode {
    var node = ArchiveNode()
    node.offset = offset
    node.compressedSize = compressedSize
    node.size = size
    node.modified = modified(&clock)
    node.crc = crc
    node.mode = UInt16(mode)
    node.method = method
    if isEncrypted { node.flags.insert(.isEncrypted) }
    if flags & 2 != 0 { node.flags.insert(.hasEndMarker) }
    return node
  }

  /// The UTF-8 name in Info-ZIP's extra field.
  var unicodeName: UnsafeRawBufferPointer? {
    guard let field = field(0x7075), field.count > 5, field[0] == 1 else { return nil }
    guard field.number(at: 1, as: UInt32.self) == name.crc32() else { return nil }
    return UnsafeRawBufferPointer(rebasing: field[5...])
  }
}
