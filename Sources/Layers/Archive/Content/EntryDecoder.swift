import CZip
import Glibc
import Posix

struct CompressedEntry: Sendable {
  let source: ArchiveSource
  /// Offset of the first compressed byte.
  let start: UInt64
  let node: ArchiveNode
}

/// Decodes one entry from its beginning to its end by libzip. Not thread-safe.
///
/// libzip reads a synthetic archive with this entry only: a central directory and a local header, then the
/// bytes of the real file. So it never parses the real central directory again, and decoders share nothing
/// but the file.
final class EntryDecoder: @unchecked Sendable {
  private let entry: CompressedEntry
  private let input: SingleEntryArchive
  private let archive: OpaquePointer
  private let file: OpaquePointer
  private(set) var position: UInt64 = 0

  /// Bytes, approximately.
  static let cost = 192 << 10

  /// - Throws: EOPNOTSUPP for a method that libzip lacks; ENOMEM; EIO.
  init(_ entry: CompressedEntry) throws(Errno) {
    self.entry = entry
    input = SingleEntryArchive(entry)
    var error = zip_error_t()
    zip_error_init(&error)
    defer { zip_error_fini(&error) }
    let context = Unmanaged.passUnretained(input).toOpaque()
    guard let source = zip_source_function_create(SingleEntryArchive.callback, context, &error) else {
      throw .noMemory
    }
    guard let archive = zip_open_from_source(source, ZIP_RDONLY, &error) else {
      zip_source_free(source)
      throw input.failure ?? .ioError
    }
    guard let file = zip_fopen_index(archive, 0, 0) else {
      let code = zip_error_code_zip(zip_get_error(archive))
      zip_discard(archive)
      throw input.failure ?? Self.error(code)
    }
    self.archive = archive
    self.file = file
  }

  deinit {
    zip_fclose(file)
    zip_discard(archive)
  }

  /// - Returns: the byte count; 0 at the end, once the checksum was verified.
  /// - Throws: EIO for damage and for a wrong size.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    guard let start = buffer.baseAddress else { return 0 }
    let count = zip_fread(file, start, zip_uint64_t(buffer.count))
    if count < 0 { throw input.failure ?? Self.error(zip_error_code_zip(zip_file_get_error(file))) }
    position += UInt64(count)
    if position > entry.node.size || (count == 0 && position < entry.node.size) { throw .ioError }
    return Int(count)
  }

  private static func error(_ code: CInt) -> Errno {
    switch code {
    case ZIP_ER_COMPNOTSUPP, ZIP_ER_ENCRNOTSUPP: .notSupported
    case ZIP_ER_MEMORY: .noMemory
    default: .ioError
    }
  }
}

/// The synthetic archive that libzip reads.
///
/// The central directory comes first, so that all offsets fit 32 bits. A gap before the end record exceeds
/// the range that libzip searches for it, so that it finds none in the compressed bytes of a nested
/// archive.
private final class SingleEntryArchive {
  private let entry: CompressedEntry
  private let head: [UInt8]
  private let tail: [UInt8]
  private let gap: UInt64 = 66 << 10
  private let size: UInt64
  private var position: UInt64 = 0
  private var error = zip_error_t()
  /// The error of reading the real file.
  private(set) var failure: Errno?
  /// A read buffer: libzip reads in small steps.
  private let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  private var bufferedStart: UInt64 = 0
  private var bufferedCount = 0

  init(_ entry: CompressedEntry) {
    self.entry = entry
    zip_error_init(&error)
    var record = Self.fields(entry, signature: ZipRecord.signature, madeBy: [45, 3])
    let zip64 =
      Self.bytes(UInt16(1)) + Self.bytes(UInt16(16)) + Self.bytes(entry.node.size)
      + Self.bytes(entry.node.compressedSize)
    record += Self.bytes(UInt16(1)) + Self.bytes(UInt16(zip64.count))
    record += [UInt8](repeating: 0, count: 10)
    // The local header follows the central directory: 46 bytes, the name and the zip64 field.
    let tableSize = UInt32(46 + 1 + zip64.count)
    record += Self.bytes(tableSize) + [UInt8(ascii: "x")] + zip64
    let header =
      Self.fields(entry, signature: 0x0403_4B50, madeBy: []) + Self.bytes(UInt16(1))
      + Self.bytes(UInt16(0)) + [UInt8(ascii: "x")]
    head = record + header
    tail =
      Self.bytes(UInt32(0x0605_4B50)) + [0, 0, 0, 0, 1, 0, 1, 0] + Self.bytes(tableSize)
      + [0, 0, 0, 0, 0, 0]
    size = UInt64(head.count) + entry.node.compressedSize + gap + UInt64(tail.count)
  }

  deinit {
    zip_error_fini(&error)
    readBuffer.deallocate()
  }

  private static func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }

  /// The fields that the central record and the local header share.
  private static func fields(_ entry: CompressedEntry, signature: UInt32, madeBy: [UInt8]) -> [UInt8] {
    let flags: [UInt8] = [entry.node.flags.contains(.hasEndMarker) ? 2 : 0, 0]
    let sentinel = UInt32.max
    return bytes(signature) + madeBy + [45, 0] + flags + bytes(entry.node.method) + [0, 0, 0x21, 0]
      + bytes(entry.node.crc) + bytes(sentinel) + bytes(sentinel)
  }

  /// The callback of `zip_source_function_create`.
  static let callback:
    @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, zip_uint64_t, zip_source_cmd_t) ->
      zip_int64_t = { context, data, length, command in
        guard let context else { return -1 }
        return Unmanaged<SingleEntryArchive>.fromOpaque(context)._withUnsafeGuaranteedRef {
          $0.handle(command, data, length)
        }
      }

  private func handle(
    _ command: zip_source_cmd_t, _ data: UnsafeMutableRawPointer?, _ length: UInt64
  ) -> Int64 {
    switch command {
    case ZIP_SOURCE_SUPPORTS:
      let known = [
        ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
        ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS,
      ]
      return known.reduce(0) { $0 | 1 << Int64($1.rawValue) }
    case ZIP_SOURCE_OPEN:
      position = 0
      return 0
    case ZIP_SOURCE_CLOSE, ZIP_SOURCE_FREE: return 0
    case ZIP_SOURCE_TELL: return Int64(position)
    case ZIP_SOURCE_ERROR:
      guard let data else { return -1 }
      return zip_error_to_data(&error, data, length)
    case ZIP_SOURCE_SEEK:
      guard let data else { return -1 }
      let target = zip_source_seek_compute_offset(position, size, data, length, &error)
      if target < 0 { return -1 }
      position = UInt64(target)
      return 0
    case ZIP_SOURCE_STAT: return stat(data, length)
    case ZIP_SOURCE_READ: return read(UnsafeMutableRawBufferPointer(start: data, count: Int(length)))
    default:
      zip_error_set(&error, ZIP_ER_OPNOTSUPP, 0)
      return -1
    }
  }

  private func stat(_ data: UnsafeMutableRawPointer?, _ length: UInt64) -> Int64 {
    guard let data, length >= UInt64(MemoryLayout<zip_stat_t>.size) else { return -1 }
    let stat = data.assumingMemoryBound(to: zip_stat_t.self)
    zip_stat_init(stat)
    stat.pointee.size = size
    stat.pointee.valid = zip_uint64_t(ZIP_STAT_SIZE)
    return Int64(MemoryLayout<zip_stat_t>.size)
  }

  private func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int64 {
    var done = 0
    while done < buffer.count, position < size {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let count: Int
      do throws(Errno) { count = try readPart(rest) } catch {
        failure = error
        zip_error_set(&self.error, ZIP_ER_READ, error.rawValue)
        return -1
      }
      done += count
      position += UInt64(count)
    }
    return Int64(done)
  }

  private func readPart(_ buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let (dataStart, gapStart) = (UInt64(head.count), UInt64(head.count) + entry.node.compressedSize)
    if position < dataStart { return Self.copy(head[Int(position)...], buffer) }
    if position < gapStart {
      let count = Int(min(UInt64(buffer.count), gapStart - position))
      return try readCompressed(
        UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: position - dataStart)
    }
    if position < gapStart + gap {
      let count = Int(min(UInt64(buffer.count), gapStart + gap - position))
      UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]).initializeMemory(as: UInt8.self, repeating: 0)
      return count
    }
    return Self.copy(tail[Int(position - gapStart - gap)...], buffer)
  }

  private static func copy(_ bytes: ArraySlice<UInt8>, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(bytes.count, buffer.count)
    buffer.copyBytes(from: bytes.prefix(count))
    return count
  }

  private func readCompressed(
    _ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
  ) throws(Errno) -> Int {
    if offset < bufferedStart || offset >= bufferedStart + UInt64(bufferedCount) {
      bufferedCount = 0
      let count = Int(min(UInt64(readBuffer.count), entry.node.compressedSize - offset))
      try entry.source.read(
        into: UnsafeMutableRawBufferPointer(rebasing: readBuffer[..<count]), at: entry.start + offset)
      (bufferedStart, bufferedCount) = (offset, count)
    }
    let start = Int(offset - bufferedStart)
    let count = min(buffer.count, bufferedCount - start)
    buffer.copyBytes(from: UnsafeRawBufferPointer(rebasing: readBuffer[start..<start + count]))
    return count
  }
}
