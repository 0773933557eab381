import CZip
import Posix

/// The synthetic archive that libzip reads.
///
/// The central directory comes first, so that all offsets fit 32 bits. A gap before the end record exceeds
/// the range that libzip searches for it, so that it finds none in the compressed bytes of a nested
/// archive.
final class SingleEntryArchive {
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
