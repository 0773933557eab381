#if Archives
import CZlib
import Posix

/// What zlib decompresses from gzip. Unlike libarchive's, this decoder verifies the checksum of each member.
final class GzipStream: ContainerStream {
  private let file: FileStream
  private var stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 128 << 10, alignment: 4096)
  private var isAtEnd = false
  private var isBetweenMembers = false
  private var isFileAtEnd = false
  private var description: String?

  override var damage: String? { description }
  override var progress: UInt64 { file.progress }

  override init(_ source: ArchiveSource) {
    file = FileStream(source)
    stream.initialize(to: z_stream())
    super.init(source)
    // 16: with a header and a trailer.
    _ = inflateInit2_(stream, 15 + 16, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
    output.deallocate()
  }

  override func next() throws(Errno) -> UnsafeRawBufferPointer {
    stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: Bytef.self)
    stream.pointee.avail_out = uInt(output.count)
    while stream.pointee.avail_out > 0, !isAtEnd { try step() }
    return UnsafeRawBufferPointer(rebasing: output[..<(output.count - Int(stream.pointee.avail_out))])
  }

  private func step() throws(Errno) {
    if stream.pointee.avail_in == 0, !isFileAtEnd {
      let bytes = try file.next()
      isFileAtEnd = bytes.isEmpty
      // zlib does not write to its input.
      stream.pointee.next_in = UnsafeMutablePointer(
        mutating: bytes.baseAddress?.assumingMemoryBound(to: Bytef.self))
      stream.pointee.avail_in = uInt(bytes.count)
    }
    if isBetweenMembers {
      // Anything but another member is padding, which gzip(1) ignores as well.
      guard stream.pointee.avail_in > 0, stream.pointee.next_in.pointee == 0x1F else { return isAtEnd = true }
      inflateReset(stream)
      isBetweenMembers = false
    }
    switch inflate(stream, Z_NO_FLUSH) {
    case Z_STREAM_END: isBetweenMembers = true
    case Z_OK: break
    case Z_BUF_ERROR where isFileAtEnd: try fail("its gzip data ends in the middle")
    case Z_BUF_ERROR: break
    case Z_MEM_ERROR: throw .noMemory
    default: try fail(stream.pointee.msg.map { "gzip: " + String(cString: $0) } ?? "its gzip data is damaged")
    }
  }

  private func fail(_ damage: String) throws(Errno) {
    description = damage
    throw .ioError
  }
}
#endif
