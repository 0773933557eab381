import Posix

/// The kind of an archive that is not a zip archive, recognized by its first bytes.
struct ContainerFormat: Equatable {
  /// The values are suffixes of file names.
  enum Kind: String {
    case tar, cpio, ar, cab, xar, rar
    case sevenZip = "7z"
    case iso9660 = "iso"
    case lha = "lzh"
    /// RAR from version 5 on.
    case rar5
  }

  /// The values are suffixes of file names.
  enum Compression: String {
    case none = ""
    case gzip = "gz"
    case bzip2 = "bz2"
    case xz
    case zstd = "zst"
    case lz4
    case lzip = "lz"
    case lzma
    case lzop = "lzo"
    case compress = "Z"
  }

  /// Of a compressed archive, known once it is decompressed: tar or cpio.
  var kind: Kind
  /// Of the whole archive.
  let compression: Compression

  /// Whether entries can be where they are in the file.
  var isPlain: Bool { compression == .none && [.tar, .cpio, .ar, .iso9660].contains(kind) }

  /// The most bytes that libarchive may read to find the next header, and to read it; nil if it limits them itself, or
  /// reads a table of all entries. Of an image it reads whole folders, and of old RAR archives recovery records.
  var headerLimit: UInt64? {
    switch kind {
    case .tar, .cpio, .ar, .lha: 16 << 20
    case .rar: 64 << 20
    case .iso9660: 256 << 20
    case .rar5, .sevenZip, .cab, .xar: nil
    }
  }

  /// As in the name of a file.
  var name: String {
    if kind == .rar5 { return Kind.rar.rawValue }
    return compression == .none ? kind.rawValue : kind.rawValue + "." + compression.rawValue
  }

  private init(_ kind: Kind, _ compression: Compression = .none) {
    (self.kind, self.compression) = (kind, compression)
  }

  /// Of tar archives, in bytes.
  static let blockSize = 512

  /// - Returns: nil if the file is nothing of the kind.
  static func detect(in source: ArchiveSource) throws(ArchiveError) -> ContainerFormat? {
    let count = Int(min(source.size, UInt64(blockSize)))
    do throws(Errno) {
      let found = try withUnsafeTemporaryBytes(max(1, count)) { buffer throws(Errno) in
        let head = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        try source.read(into: head, at: 0)
        return detect(in: UnsafeRawBufferPointer(head))
      }
      if let found { return found }
      if try isISO9660(source) { return ContainerFormat(.iso9660) }
      return try isEmptyTar(source) ? ContainerFormat(.tar) : nil
    } catch { throw error == .ioError ? .changing : .unreadable(error) }
  }

  private static func detect(in head: UnsafeRawBufferPointer) -> ContainerFormat? {
    for (magic, offset, kind) in magics where head.dropFirst(offset).starts(with: magic) {
      return ContainerFormat(kind)
    }
    for (magic, compression) in compressionMagics where head.starts(with: magic) {
      return ContainerFormat(.tar, compression)
    }
    if isBzip2(head) { return ContainerFormat(.tar, .bzip2) }
    if isZstd(head) { return ContainerFormat(.tar, .zstd) }
    if isTar(head) { return ContainerFormat(.tar) }
    if isLZMA(head) { return ContainerFormat(.tar, .lzma) }
    return isBinaryCpio(head) ? ContainerFormat(.cpio) : nil
  }

  private static let magics: [(magic: [UInt8], offset: Int, kind: Kind)] = [
    (SevenZipHeader.signature, 0, .sevenZip),
    (Array("070701".utf8), 0, .cpio), (Array("070702".utf8), 0, .cpio), (Array("070707".utf8), 0, .cpio),
    (Array("!<arch>\n".utf8), 0, .ar),
    (Array("MSCF".utf8) + [0, 0, 0, 0], 0, .cab),
    (Array("xar!".utf8), 0, .xar),
    (RARHeader.signature + [0], 0, .rar), (RARHeader.signature + [1, 0], 0, .rar5),
    (Array("-lh".utf8), 2, .lha), (Array("-lz".utf8), 2, .lha),
  ]

  private static let compressionMagics: [(magic: [UInt8], compression: Compression)] = [
    ([0x1F, 0x8B, 0x08], .gzip), ([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00], .xz),
    ([0x04, 0x22, 0x4D, 0x18], .lz4), ([0x02, 0x21, 0x4C, 0x18], .lz4),
    (Array("LZIP".utf8) + [1], .lzip), ([0x89, 0x4C, 0x5A, 0x4F, 0, 0x0D, 0x0A, 0x1A, 0x0A], .lzop),
    ([0x1F, 0x9D], .compress),
  ]

  /// What precedes the volume descriptors is left to programs that start from a disk.
  private static func isISO9660(_ source: ArchiveSource) throws(Errno) -> Bool {
    let magic = Array("CD001".utf8) + [1]
    let start: UInt64 = 32_769
    guard source.size >= start + UInt64(blockSize) else { return false }
    return try withUnsafeTemporaryBytes(magic.count) { buffer throws(Errno) in
      try source.read(into: buffer, at: 0)
      // An image can be the first file of a zip archive.
      if buffer.starts(with: Array("PK\u{3}\u{4}".utf8)) { return false }
      try source.read(into: buffer, at: start)
      return buffer.elementsEqual(magic)
    }
  }

  /// A stream without a container has no magic number, but few sizes of dictionaries and contents are usual.
  private static func isLZMA(_ head: UnsafeRawBufferPointer) -> Bool {
    guard head.count >= 13, head[0] == 0x5D else { return false }
    let dictionary = head.number(at: 1, as: UInt32.self)
    let size = head.number(at: 5, as: UInt64.self)
    let isUsual =
      dictionary >= 1 << 12 && (dictionary.nonzeroBitCount == 1 || dictionary & (dictionary >> 1) != 0)
    return isUsual && dictionary.nonzeroBitCount <= 2 && (size == .max || size < 1 << 40)
  }

  /// Headers of 16-bit words in either byte order, of which the first is 070707 and the eleventh the length of the name.
  private static func isBinaryCpio(_ head: UnsafeRawBufferPointer) -> Bool {
    guard head.count >= 26 else { return false }
    let (magic, length) = (head.number(at: 0, as: UInt16.self), head.number(at: 20, as: UInt16.self))
    switch magic {
    case 0o070707: return (2...4096).contains(length)
    case UInt16(0o070707).byteSwapped: return (2...4096).contains(length.byteSwapped)
    default: return false
    }
  }

  private static func isBzip2(_ head: UnsafeRawBufferPointer) -> Bool {
    // The level, and the first bytes of a block or of the end.
    head.count >= 10 && head.starts(with: Array("BZh".utf8)) && (0x31...0x39).contains(head[3])
      && (head[4...].starts(with: [0x31, 0x41, 0x59, 0x26, 0x53, 0x59])
        || head[4...].starts(with: [0x17, 0x72, 0x45, 0x38, 0x50, 0x90]))
  }

  private static func isZstd(_ head: UnsafeRawBufferPointer) -> Bool {
    guard head.count >= 8 else { return false }
    let magic = head.number(at: 0, as: UInt32.self)
    // Frames to skip may come first, as pzstd(1) writes them.
    return magic == 0xFD2F_B528 || magic & 0xFFFF_FFF0 == 0x184D_2A50
  }

  /// A file of zeros that is larger may be one that is being downloaded.
  private static let largestEmptyTar: UInt64 = 1 << 20

  /// Whether a file is a tar archive of nothing, which is at least two blocks of zeros.
  private static func isEmptyTar(_ source: ArchiveSource) throws(Errno) -> Bool {
    guard source.size >= 2 * UInt64(blockSize), source.size <= largestEmptyTar,
      source.size % UInt64(blockSize) == 0
    else { return false }
    return try withUnsafeTemporaryBytes(blockSize) { block throws(Errno) in
      for offset in stride(from: 0, to: source.size, by: blockSize) {
        try source.read(into: block, at: offset)
        if block.contains(where: { $0 != 0 }) { return false }
      }
      return true
    }
  }

  /// Whether a header with the right checksum comes first.
  static func isTar(_ head: UnsafeRawBufferPointer) -> Bool {
    guard head.count == blockSize, head[0] != 0 else { return false }
    var (declared, hasDigit) = (0, false)
    for byte in head[148..<156] {
      if (0x30...0x37).contains(byte) {
        (declared, hasDigit) = (declared * 8 + Int(byte - 0x30), true)
      } else if hasDigit || (byte != 0x20 && byte != 0) {
        break
      }
    }
    var (sum, signedSum) = (0, 0)
    for (offset, byte) in head.enumerated() {
      let byte = (148..<156).contains(offset) ? 0x20 : byte
      sum += Int(byte)
      signedSum += Int(Int8(bitPattern: byte))
    }
    return hasDigit && (declared == sum || declared == signedSum)
  }
}
