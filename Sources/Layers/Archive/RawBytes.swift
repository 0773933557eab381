import CIsal
import CZlib

extension UnsafeRawBufferPointer {
  /// Little-endian.
  @inline(__always)
  func number<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type) -> Number {
    Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }

  /// The CRC-32 of the bytes after others with the CRC-32 `former`.
  func crc32(after former: UInt32 = 0) -> UInt32 {
    // zlib returns the initial value for a null pointer.
    guard let start = baseAddress else { return former }
    if let library = Isal.library(for: count) {
      return library.crc32(former, start.assumingMemoryBound(to: UInt8.self), UInt64(count))
    }
    return UInt32(truncatingIfNeeded: crc32_z(UInt(former), start, count))
  }
}
