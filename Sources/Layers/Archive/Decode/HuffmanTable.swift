import Posix

/// Decodes the symbols of a canonical Huffman code by a table of all sequences of bits.
struct HuffmanTable: ~Copyable {
  /// The symbol in the upper bits, the number of bits in the lower five; 0 for what is no code.
  private let entries: UnsafeMutablePointer<UInt16>
  private let mostBits: Int

  /// - Parameter mostBits: the length of the longest code, at most 16.
  init(mostBits: Int) {
    self.mostBits = mostBits
    entries = .allocate(capacity: 1 << mostBits)
    entries.initialize(repeating: 0, count: 1 << mostBits)
  }

  deinit { entries.deallocate() }

  /// - Parameter lengths: the number of bits of each symbol, 0 for none.
  /// - Throws: EIO if there are more codes than bits allow.
  mutating func build(_ lengths: ArraySlice<UInt8>) throws(Errno) {
    entries.update(repeating: 0, count: 1 << mostBits)
    var code = 0
    for bits in 1...mostBits {
      for (symbol, length) in lengths.enumerated() where Int(length) == bits {
        guard code < 1 << bits else { throw .ioError }
        // The first bit of a code is the lowest.
        let reversed = Int(UInt16(code).bitReversed >> (16 - bits))
        for entry in stride(from: reversed, to: 1 << mostBits, by: 1 << bits) {
          entries[entry] = UInt16(symbol << 5 | bits)
        }
        code += 1
      }
      code <<= 1
    }
  }

  /// - Throws: EIO at the end, and for what is no code.
  @inline(__always)
  func next(_ input: inout BitReader) throws(Errno) -> Int {
    let entry = Int(entries[input.peek(mostBits)])
    if entry == 0 { throw .ioError }
    try input.skip(entry & 31)
    return entry >> 5
  }
}

extension UInt16 {
  fileprivate var bitReversed: UInt16 {
    (0..<16).reduce(0) { $0 | (self >> $1 & 1) << (15 - $1) }
  }
}
