#if Archives
import CBzip2
import Posix

/// Decodes bzip2 by libbz2, which is linked and starts fast.
final class Bzip2Decoder: EntryDecoder, @unchecked Sendable {
  static let method: UInt16 = 12

  /// libbz2 refers from its state to the stream, which therefore must not move.
  private let stream = UnsafeMutablePointer<bz_stream>.allocate(capacity: 1)
  private var input: CompressedInput
  private var hasEnded = false

  /// At most, with blocks of 900 kB: four bytes for each of a block's.
  override var cost: Int { 3700 << 10 }
  override var verifiesChecksum: Bool { true }

  override init(_ entry: CompressedEntry) throws(Errno) {
    stream.initialize(to: bz_stream())
    input = CompressedInput(entry)
    if BZ2_bzDecompressInit(stream, 0, 0) != BZ_OK {
      stream.deallocate()
      throw .noMemory
    }
    try super.init(entry)
  }

  deinit {
    BZ2_bzDecompressEnd(stream)
    stream.deallocate()
  }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let room = min(buffer.count, 1 << 30)
    stream.pointee.next_out = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
    stream.pointee.avail_out = UInt32(room)
    while !hasEnded, stream.pointee.avail_out > 0 {
      if stream.pointee.avail_in == 0 { try readInput() }
      let former = (stream.pointee.avail_in, stream.pointee.avail_out)
      switch BZ2_bzDecompress(stream) {
      case BZ_STREAM_END: hasEnded = true
      // Without progress the compressed bytes end too early.
      case BZ_OK where former != (stream.pointee.avail_in, stream.pointee.avail_out): break
      case BZ_MEM_ERROR: throw .noMemory
      default: throw .ioError
      }
    }
    return room - Int(stream.pointee.avail_out)
  }

  private func readInput() throws(Errno) {
    let bytes = try input.next()
    stream.pointee.next_in = UnsafeMutablePointer(
      mutating: bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
    stream.pointee.avail_in = UInt32(bytes.count)
  }
}
#endif
