import Posix

/// The checksum of a block, which finds torn writes, bytes that were lost, and blocks that are elsewhere.
enum BlockChecksum {
  /// - Parameter seed: what tells blocks of different places apart.
  /// - Returns: never 0.
  static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
    // Two independent sums, since each waits for the last multiplication of its own.
    var (first, second) = (seed | 1, ~seed)
    let prime: UInt64 = 0x9E37_79B9_7F4A_7C15
    var offset = 0
    while offset + 16 <= bytes.count {
      first = rotated(first ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) &* prime
      second = rotated(second ^ bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)) &* prime
      offset += 16
    }
    while offset < bytes.count {
      first = rotated(first ^ UInt64(bytes[offset])) &* prime
      offset += 1
    }
    return max(1, mixedHash(first, second, UInt64(bytes.count)))
  }

  private static func rotated(_ word: UInt64) -> UInt64 { word << 29 | word >> 35 }

  /// A hash of a text that is the same in every process.
  static func of(_ text: [UInt8], seed: UInt64) -> UInt64 {
    text.withUnsafeBytes { of($0, seed: seed) }
  }
}
