#if Archives
import CArchive
import CLibrary
import Posix

/// The bytes that a container's reader reads in order: those of the file, or what they are decompressed to.
class ContainerStream {
  final let source: ArchiveSource
  /// The error of reading the file, or EIO for damage.
  final private(set) var failure: Errno?
  /// What is damaged; nil if unknown.
  var damage: String? { nil }

  init(_ source: ArchiveSource) { self.source = source }

  /// How much of the file was read, in bytes.
  var progress: UInt64 { 0 }

  /// - Returns: bytes that are valid until the next call; none at the end.
  func next() throws(Errno) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

  /// - Returns: how many bytes were skipped, which may be fewer.
  func skip(_ count: Int64) -> Int64 { 0 }

  /// - Returns: the new offset; nil if the stream cannot seek.
  func seek(_ offset: Int64, whence: CInt) -> Int64? { nil }

  /// The bytes that libarchive has read, and the last of them, which are valid until the next are read.
  final private(set) var delivered: UInt64 = 0
  final private(set) var lastBytes = UnsafeRawBufferPointer(start: nil, count: 0)
  /// The bytes that are delivered again before `next`.
  private final var returned = UnsafeRawBufferPointer(start: nil, count: 0)

  /// Has the last bytes of `lastBytes` delivered once more, to another reader.
  final func putBack(_ count: Int) {
    returned = UnsafeRawBufferPointer(rebasing: lastBytes.suffix(count))
    delivered -= UInt64(returned.count)
  }

  /// Up to which value of `delivered` libarchive may read on. It buffers a header's name as a whole, however long the
  /// header says that it is.
  private final var headerEnd = UInt64.max
  /// Whether a header was longer than allowed.
  final private(set) var hasLongHeader = false

  /// Limits what libarchive reads, in bytes, until the next call; nil if there is no limit.
  final func limitHeader(to count: UInt64?) {
    headerEnd = count.map { delivered + $0 } ?? .max
  }

  /// The next bytes, by way of a reader that counts them.
  final func deliver() throws(Errno) -> UnsafeRawBufferPointer {
    if delivered > headerEnd {
      hasLongHeader = true
      throw .ioError
    }
    lastBytes = returned.isEmpty ? try next() : returned
    returned = UnsafeRawBufferPointer(start: nil, count: 0)
    delivered += UInt64(lastBytes.count)
    return lastBytes
  }

  /// Has libarchive read the stream, which must outlive `archive`.
  final func attach(to archive: OpaquePointer, _ library: bundlefs_libarchive) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = library.read_set_callback_data.unsafelyUnwrapped(archive, context)
    _ = library.read_set_read_callback.unsafelyUnwrapped(archive, Self.onRead)
    _ = library.read_set_skip_callback.unsafelyUnwrapped(archive, Self.onSkip)
    _ = library.read_set_seek_callback.unsafelyUnwrapped(archive, Self.onSeek)
  }

  private static let onRead:
    @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int =
      {
        _, context, part in
        guard let context, let part else { return -1 }
        return Unmanaged<ContainerStream>.fromOpaque(context)._withUnsafeGuaranteedRef { stream in
          do throws(Errno) {
            let bytes = try stream.deliver()
            part.pointee = bytes.baseAddress
            return bytes.count
          } catch {
            stream.failure = error
            return Int(ARCHIVE_FATAL)
          }
        }
      }

  private static let onSkip: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, Int64) -> Int64 = {
    _, context, count in
    guard let context else { return 0 }
    return Unmanaged<ContainerStream>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.skip(count) }
  }

  private static let onSeek: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, Int64, CInt) -> Int64 =
    {
      _, context, offset, whence in
      guard let context else { return Int64(ARCHIVE_FATAL) }
      return Unmanaged<ContainerStream>.fromOpaque(context)._withUnsafeGuaranteedRef {
        $0.seek(offset, whence: whence) ?? Int64(ARCHIVE_FATAL)
      }
    }
}

/// The bytes of the file.
final class FileStream: ContainerStream {
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 4096)
  private let isSeekable: Bool
  private var position: UInt64

  /// - Parameters:
  ///   - offset: where to begin in the file.
  ///   - isSeekable: whether the reader may move in the file.
  init(_ source: ArchiveSource, at offset: UInt64 = 0, isSeekable: Bool = true) {
    self.isSeekable = isSeekable
    position = min(offset, source.size)
    super.init(source)
  }

  deinit { buffer.deallocate() }

  override var progress: UInt64 { position }

  override func next() throws(Errno) -> UnsafeRawBufferPointer {
    let count = Int(min(UInt64(buffer.count), source.size - position))
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    try source.read(into: part, at: position)
    position += UInt64(count)
    return UnsafeRawBufferPointer(part)
  }

  override func skip(_ count: Int64) -> Int64 {
    guard isSeekable, count > 0 else { return 0 }
    let skipped = min(UInt64(count), source.size - position)
    position += skipped
    return Int64(skipped)
  }

  override func seek(_ offset: Int64, whence: CInt) -> Int64? {
    guard isSeekable else { return nil }
    let base = whence == SEEK_SET ? 0 : Int64(whence == SEEK_CUR ? position : source.size)
    let (target, overflows) = base.addingReportingOverflow(offset)
    guard !overflows, target >= 0 else { return nil }
    position = min(UInt64(target), source.size)
    return Int64(position)
  }
}

/// What libarchive decompresses.
final class FilterStream: ContainerStream {
  private let library: bundlefs_libarchive
  private let file: FileStream
  private let archive: OpaquePointer
  private var isOpen = false
  private var isAtEnd = false

  init(
    _ source: ArchiveSource, _ compression: ContainerFormat.Compression, _ library: bundlefs_libarchive
  ) throws(Errno) {
    guard let archive = library.read_new.unsafelyUnwrapped() else { throw .noMemory }
    self.library = library
    self.archive = archive
    // libarchive skips only what it does not decompress.
    file = FileStream(source, isSeekable: false)
    super.init(source)
    _ = library.read_support_format_raw.unsafelyUnwrapped(archive)
    try compression.enable(in: archive, library)
  }

  deinit { _ = library.read_free.unsafelyUnwrapped(archive) }

  override var progress: UInt64 { file.progress }

  override var damage: String? {
    library.error_string.unsafelyUnwrapped(archive).map { String(cString: $0) }
  }

  override func next() throws(Errno) -> UnsafeRawBufferPointer {
    if !isOpen { try open() }
    while !isAtEnd {
      var (start, count, offset): (UnsafeRawPointer?, Int, Int64) = (nil, 0, 0)
      let result = library.read_data_block.unsafelyUnwrapped(archive, &start, &count, &offset)
      isAtEnd = result == ARCHIVE_EOF
      if !isAtEnd, result != ARCHIVE_OK { throw file.failure ?? .ioError }
      if count > 0, !isAtEnd { return UnsafeRawBufferPointer(start: start, count: count) }
    }
    return UnsafeRawBufferPointer(start: nil, count: 0)
  }

  private func open() throws(Errno) {
    isOpen = true
    file.attach(to: archive, library)
    var result = library.read_open1.unsafelyUnwrapped(archive)
    if result == ARCHIVE_OK {
      var header: OpaquePointer?
      result = library.read_next_header.unsafelyUnwrapped(archive, &header)
    }
    isAtEnd = result == ARCHIVE_EOF
    if result != ARCHIVE_OK, result != ARCHIVE_WARN, !isAtEnd { throw file.failure ?? .ioError }
  }
}
#endif
