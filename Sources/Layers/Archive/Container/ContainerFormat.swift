import Posix

/// The kind of an archive that is not a zip archive, recognized by its first bytes.
struct ContainerFormat: Equatable {
  enum Compression { case none, gzip, bzip2, xz, zstd }
  /// Of a tar archive.
  let compression: Compression
  let is7z: Bool

  /// Whether entries are where they are in the file.
  var isPlain: Bool { compression == .none && !is7z }

  /// As in the name of a file.
  var name: String {
    if is7z { return "7z" }
    switch compression {
    case .none: return "tar"
    case .gzip: return "tar.gz"
    case .bzip2: return "tar.bz2"
    case .xz: return "tar.xz"
    case .zstd: return "tar.zst"
    }
  }

  private init(_ compression: Compression, is7z: Bool = false) {
    (self.compression, self.is7z) = (compression, is7z)
  }

  private static let blockSize = 512

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
      return try isEmptyTar(source) ? ContainerFormat(.none) : nil
    } catch { throw error == .ioError ? .changing : .unreadable(error) }
  }

  private static func detect(in head: UnsafeRawBufferPointer) -> ContainerFormat? {
    if head.starts(with: SevenZipHeader.signature) { return ContainerFormat(.none, is7z: true) }
    if head.starts(with: [0x1F, 0x8B, 0x08]) { return ContainerFormat(.gzip) }
    if head.starts(with: [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00]) { return ContainerFormat(.xz) }
    if isBzip2(head) { return ContainerFormat(.bzip2) }
    if isZstd(head) { return ContainerFormat(.zstd) }
    return isTar(head) ? ContainerFormat(.none) : nil
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
  private static func isTar(_ head: UnsafeRawBufferPointer) -> Bool {
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
