#if Archives
import CArchive
import CLibrary
import Posix

/// Decodes by libarchive: encrypted entries, and those in methods that the linked decoders lack.
///
/// libarchive reads a local file header that describes this entry, then the bytes of the real file.
final class LibarchiveDecoder: EntryDecoder, @unchecked Sendable {
  private let library: bundlefs_libarchive
  private let input: EntryStream
  private let archive: OpaquePointer
  private let hasChecksum: Bool

  override var verifiesChecksum: Bool { hasChecksum }

  /// The dictionaries of LZMA, XZ and Zstandard, and the model of PPMd, grow with the content.
  override var cost: Int { (1 << 20) + Int(clamping: min(entry.node.size, 64 << 20)) }

  init(_ entry: CompressedEntry, _ passwords: [[UInt8]]) throws(Errno) {
    let isEncrypted = entry.node.flags.contains(.isEncrypted)
    if isEncrypted, passwords.isEmpty { throw .permissionDenied }
    guard let library = Libarchive.functions else { throw isEncrypted ? .permissionDenied : .notSupported }
    guard isEncrypted || Libarchive.supports(entry.node.method) else { throw .notSupported }
    let header = try EntryHeader(entry)
    guard let archive = library.read_new.unsafelyUnwrapped() else { throw .noMemory }
    self.library = library
    self.archive = archive
    input = EntryStream(entry, head: header.bytes)
    hasChecksum = header.hasChecksum
    try super.init(entry)
    try open(passwords)
  }

  deinit { _ = library.read_free.unsafelyUnwrapped(archive) }

  private func open(_ passwords: [[UInt8]]) throws(Errno) {
    _ = library.read_support_format_zip_streamable.unsafelyUnwrapped(archive)
    // It would also compare those that `EntryHeader` replaces.
    _ = library.read_set_option.unsafelyUnwrapped(archive, "zip", "ignorecrc32", "1")
    for password in passwords {
      _ = try? withCName(password) { name throws(Errno) in
        library.read_add_passphrase.unsafelyUnwrapped(archive, name)
      }
    }
    let context = Unmanaged.passUnretained(input).toOpaque()
    try check(library.read_open.unsafelyUnwrapped(archive, context, nil, EntryStream.callback, nil))
    var header: OpaquePointer?
    try check(library.read_next_header.unsafelyUnwrapped(archive, &header))
  }

  private func check(_ result: CInt) throws(Errno) {
    if result != ARCHIVE_OK && result != ARCHIVE_WARN { throw input.failure ?? .ioError }
  }

  /// libarchive has no code for it, only messages such as "Incorrect passphrase".
  private var isPasswordWrong: Bool {
    guard entry.node.flags.contains(.isEncrypted),
      let message = library.error_string.unsafelyUnwrapped(archive)
    else { return false }
    return strstr(message, "passphrase") != nil
  }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let count = library.read_data.unsafelyUnwrapped(archive, buffer.baseAddress, buffer.count)
    if count < 0 {
      throw input.failure ?? (isPasswordWrong ? .permissionDenied : .ioError)
    }
    return count
  }
}

/// The local file header that libarchive reads in place of the real one.
private struct EntryHeader {
  private(set) var bytes: [UInt8] = []
  /// Entries of AE-2 (WinZip) have an authentication code, which libarchive verifies, instead of the checksum.
  private(set) var hasChecksum = true

  init(_ entry: CompressedEntry) throws(Errno) {
    let node = entry.node
    var flags: UInt16 = node.flags.contains(.hasEndMarker) ? 2 : 0
    var extra = Self.bytes(UInt16(1)) + Self.bytes(UInt16(16))
    extra += Self.bytes(node.size) + Self.bytes(node.compressedSize)
    var crc = node.crc
    if node.flags.contains(.isEncrypted) {
      let real = try Self.realHeader(of: entry)
      flags |= 1
      crc = try real.withUnsafeBytes { header -> Result<UInt32, Errno> in
        let flags = header.number(at: 6, as: UInt16.self)
        // Of strong encryption, of which libarchive has no part.
        if flags & (1 << 6 | 1 << 13) != 0 { return .failure(.permissionDenied) }
        // The byte by which ZipCrypto recognizes a password is of the time if the checksum follows the content.
        let time = UInt32(header.number(at: 10, as: UInt16.self))
        return .success(flags & 1 << 3 != 0 ? (time >> 8) << 24 : node.crc)
      }.get()
      if node.method == Self.winZip {
        let field = try Self.encryption(in: real)
        hasChecksum = field[4] != 2
        extra += field
      }
    }
    // The field of a real header can be so long that it leaves no room for the other.
    guard let extraSize = UInt16(exactly: extra.count) else { throw .ioError }
    bytes = Self.bytes(UInt32(0x0403_4B50)) + [45, 0] + Self.bytes(flags)
    bytes += Self.bytes(Libarchive.number(of: node.method))
    bytes += [0, 0, 0x21, 0] + Self.bytes(crc) + Self.bytes(UInt32.max) + Self.bytes(UInt32.max)
    bytes += Self.bytes(UInt16(1)) + Self.bytes(extraSize) + [UInt8(ascii: "x")] + extra
  }

  private static let winZip: UInt16 = 99

  private static func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }

  private static func realHeader(of entry: CompressedEntry) throws(Errno) -> [UInt8] {
    guard entry.start >= entry.header + 30 else { throw .ioError }
    // At most 30 bytes and two fields of 64 KiB.
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Int(min(entry.start - entry.header, 30 + 2 * 0xFFFF)), alignment: 16)
    defer { buffer.deallocate() }
    try entry.source.read(into: buffer, at: entry.header)
    return Array(buffer)
  }

  /// The extra field 0x9901: version, vendor, key size and real method.
  private static func encryption(in header: [UInt8]) throws(Errno) -> [UInt8] {
    var position = header.withUnsafeBytes { 30 + Int($0.number(at: 26, as: UInt16.self)) }
    while position + 4 <= header.count {
      let (number, count) = header.withUnsafeBytes {
        ($0.number(at: position, as: UInt16.self), Int($0.number(at: position + 2, as: UInt16.self)))
      }
      guard position + 4 + count <= header.count else { break }
      if number == 0x9901, count >= 7 { return Array(header[position..<position + 4 + count]) }
      position += 4 + count
    }
    throw .ioError
  }
}

/// A header, then the compressed bytes of an entry.
private final class EntryStream {
  private let entry: CompressedEntry
  private let head: [UInt8]
  /// Of the entry; nil before the header was read.
  private var offset: UInt64?
  /// The error of reading the real file.
  private(set) var failure: Errno?
  private let buffer: UnsafeMutableRawBufferPointer

  init(_ entry: CompressedEntry, head: [UInt8]) {
    self.entry = entry
    self.head = head
    buffer = .allocate(byteCount: max(64 << 10, head.count), alignment: 16)
  }

  deinit { buffer.deallocate() }

  /// The callback of `archive_read_open`.
  static let callback:
    @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeMutablePointer<UnsafeRawPointer?>?) ->
      Int = { _, context, part in
        guard let context, let part else { return -1 }
        return Unmanaged<EntryStream>.fromOpaque(context)._withUnsafeGuaranteedRef { stream in
          part.pointee = UnsafeRawPointer(stream.buffer.baseAddress)
          do throws(Errno) { return try stream.next() } catch {
            stream.failure = error
            return Int(ARCHIVE_FATAL)
          }
        }
      }

  /// - Returns: the bytes in the buffer; 0 at the end.
  private func next() throws(Errno) -> Int {
    guard let position = offset else {
      buffer.copyBytes(from: head)
      offset = 0
      return head.count
    }
    let count = Int(min(UInt64(buffer.count), entry.node.compressedSize - position))
    try entry.source.read(
      into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: entry.start + position)
    offset = position + UInt64(count)
    return count
  }
}
#endif
