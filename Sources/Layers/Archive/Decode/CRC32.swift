#if Archives
import CIsal
import CZlib

extension UnsafeRawBufferPointer {
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

extension UInt32 {
  /// The CRC-32 of zeros after bytes with the CRC-32 `former`, in a time that hardly grows with their count.
  static func crc32(afterZeros count: UInt64, _ former: UInt32) -> UInt32 {
    var (zeros, checksum, length, left) = (UInt(crc32_z(0, [0], 1)), UInt(former), 1, count)
    while left > 0 {
      if left & 1 == 1 { checksum = crc32_combine(checksum, zeros, length) }
      left >>= 1
      if left == 0 { break }
      zeros = crc32_combine(zeros, zeros, length)
      length *= 2
    }
    return UInt32(truncatingIfNeeded: checksum)
  }
}
#endif
