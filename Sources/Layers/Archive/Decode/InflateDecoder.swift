#if Archives
import CZlib
import Posix

/// Decodes Deflate by zlib: the first small entries, and all where ISA-L is not installed. Its state can be copied at
/// any position, so that decoding can be resumed there.
final class InflateDecoder: EntryDecoder, @unchecked Sendable {
  static let method: UInt16 = 8
  /// zlib refers from its state to the stream, which therefore must not move.
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private var input: CompressedInput
  private var hasEnded = false

  override var verifiesChecksum: Bool { true }

  override init(_ entry: CompressedEntry) throws(Errno) {
    stream.initialize(to: z_stream())
    input = CompressedInput(entry)
    // A negative number of bits: without zlib's header.
    let result = inflateInit2_(stream, -MAX_WBITS, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
    if result != Z_OK {
      stream.deallocate()
      throw .noMemory
    }
    try super.init(entry)
  }

  private init(copying other: InflateDecoder) throws(Errno) {
    stream.initialize(to: z_stream())
    input = CompressedInput(other.entry, from: other.input.offset - UInt64(other.stream.pointee.avail_in))
    if inflateCopy(stream, other.stream) != Z_OK {
      stream.deallocate()
      throw .noMemory
    }
    (stream.pointee.next_in, stream.pointee.avail_in) = (nil, 0)
    hasEnded = other.hasEnded
    try super.init(resuming: other)
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
  }

  /// zlib's state with its window of 32 KiB, and this object.
  override var copyCost: Int { 41 << 10 }

  override func copy() -> EntryDecoder? { try? InflateDecoder(copying: self) }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let room = min(buffer.count, 1 << 30)
    stream.pointee.next_out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_out = UInt32(room)
    while !hasEnded, stream.pointee.avail_out > 0 {
      if stream.pointee.avail_in == 0 { try readInput() }
      // With Z_FINISH zlib does without a window where an entry is decoded by one call.
      switch inflate(stream, input.isAtEnd ? Z_FINISH : Z_NO_FLUSH) {
      case Z_STREAM_END: hasEnded = true
      case Z_OK: break
      // Either the buffer is full, or more input is needed.
      case Z_BUF_ERROR where stream.pointee.avail_out == 0 || !input.isAtEnd: break
      case Z_MEM_ERROR: throw .noMemory
      default: throw .ioError
      }
    }
    return room - Int(stream.pointee.avail_out)
  }

  private func readInput() throws(Errno) {
    let bytes = try input.next()
    stream.pointee.next_in = UnsafeMutablePointer(
      mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
    stream.pointee.avail_in = UInt32(bytes.count)
  }
}
#endif
