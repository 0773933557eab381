import Posix

/// Decodes a Deflate64 stream: Deflate (RFC 1951) with a window of 64 KiB, longer matches and two more distance codes.
/// Windows compresses large files by it, and no library of Debian decodes it.
struct Inflate64: ~Copyable {
  private enum State {
    case header, stored(Int), codes, end
    case match(length: Int, distance: Int)
  }
  private var state = State.header
  private var isLast = false
  private var input: BitReader
  private var literals = HuffmanTable()
  private var distances = HuffmanTable()
  private let window = UnsafeMutablePointer<UInt8>.allocate(capacity: windowSize)
  private var position = 0

  private static let windowSize = 1 << 16

  init(_ input: consuming BitReader) {
    self.input = input
    // Damaged distances are rejected, so that no byte is read before it is written.
    window.initialize(repeating: 0, count: Self.windowSize)
  }

  deinit { window.deallocate() }

  /// - Returns: the byte count; less than asked for at the end only.
  /// - Throws: EIO for a damaged stream.
  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    var count = 0
    while count < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
      switch state {
      case .header: try readHeader()
      case .stored(let left): count += try copyStored(left, rest)
      case .codes: count += try decodeCodes(rest)
      case .match(let length, let distance): count += copyMatch(length, distance, rest)
      case .end: return count
      }
    }
    return count
  }

  private mutating func readHeader() throws(Errno) {
    if isLast { return state = .end }
    isLast = try input.take(1) == 1
    switch try input.take(2) {
    case 0:
      input.alignToByte()
      let count = try input.take(16)
      guard try input.take(16) == count ^ 0xFFFF else { throw .ioError }
      state = .stored(Int(count))
    case 1:
      try literals.build(Self.fixedLengths[..<288])
      try distances.build(ArraySlice([UInt8](repeating: 5, count: 32)))
      state = .codes
    case 2:
      try readTables()
      state = .codes
    default: throw .ioError
    }
  }

  private static let fixedLengths: [UInt8] = (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 }

  /// RFC 1951, 3.2.7.
  private mutating func readTables() throws(Errno) {
    let literalCount = Int(try input.take(5)) + 257
    let distanceCount = Int(try input.take(5)) + 1
    var order = [UInt8](repeating: 0, count: 19)
    for index in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15].prefix(
      Int(try input.take(4)) + 4)
    {
      order[index] = UInt8(try input.take(3))
    }
    try literals.build(order[...])
    var lengths: [UInt8] = []
    while lengths.count < literalCount + distanceCount {
      let symbol = try literals.next(&input)
      switch symbol {
      case 16:
        guard let last = lengths.last else { throw .ioError }
        lengths += [UInt8](repeating: last, count: 3 + Int(try input.take(2)))
      case 17: lengths += [UInt8](repeating: 0, count: 3 + Int(try input.take(3)))
      case 18: lengths += [UInt8](repeating: 0, count: 11 + Int(try input.take(7)))
      default: lengths.append(UInt8(symbol))
      }
    }
    guard lengths.count == literalCount + distanceCount else { throw .ioError }
    try literals.build(lengths[..<literalCount])
    try distances.build(lengths[literalCount...])
  }

  private mutating func copyStored(_ left: Int, _ buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int
  {
    let count = min(left, buffer.count)
    for index in 0..<count { put(UInt8(truncatingIfNeeded: try input.take(8)), buffer, index) }
    state = left == count ? .header : .stored(left - count)
    return count
  }

  private mutating func decodeCodes(_ buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    var count = 0
    while count < buffer.count {
      let symbol = try literals.next(&input)
      if symbol < 256 {
        put(UInt8(truncatingIfNeeded: symbol), buffer, count)
        count += 1
      } else if symbol == 256 {
        state = .header
        return count
      } else {
        state = try readMatch(symbol - 257)
        return count
      }
    }
    return count
  }

  private mutating func readMatch(_ symbol: Int) throws(Errno) -> State {
    guard symbol < Self.lengths.count else { throw .ioError }
    let length = Self.lengths[symbol] + Int(try input.take(Self.lengthBits[symbol]))
    let code = try distances.next(&input)
    guard code < 32 else { throw .ioError }
    // Each two codes have a bit more than the two before.
    let bits = max(0, code / 2 - 1)
    let base = code < 2 ? code + 1 : (2 + code % 2) << bits + 1
    let distance = base + Int(try input.take(bits))
    guard distance <= position else { throw .ioError }
    return .match(length: length, distance: distance)
  }

  private static let lengths = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 3,
  ]
  private static let lengthBits = [
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 16,
  ]

  private mutating func copyMatch(
    _ length: Int, _ distance: Int, _ buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    let count = min(length, buffer.count)
    for index in 0..<count { put(window[(position - distance) & (Self.windowSize - 1)], buffer, index) }
    state = length == count ? .codes : .match(length: length - count, distance: distance)
    return count
  }

  @inline(__always)
  private mutating func put(_ byte: UInt8, _ buffer: UnsafeMutableRawBufferPointer, _ index: Int) {
    buffer[index] = byte
    window[position & (Self.windowSize - 1)] = byte
    position += 1
  }
}

/// Decodes the symbols of a canonical Huffman code by a table of all sequences of 15 bits.
private struct HuffmanTable: ~Copyable {
  /// The symbol in the upper bits, the number of bits in the lower four; 0 for what is no code.
  private let entries = UnsafeMutablePointer<UInt16>.allocate(capacity: 1 << mostBits)
  private static let mostBits = 15

  init() { entries.initialize(repeating: 0, count: 1 << Self.mostBits) }

  deinit { entries.deallocate() }

  /// - Parameter lengths: the number of bits of each symbol, 0 for none.
  /// - Throws: EIO if there are more codes than bits allow.
  mutating func build(_ lengths: ArraySlice<UInt8>) throws(Errno) {
    entries.update(repeating: 0, count: 1 << Self.mostBits)
    var code = 0
    for bits in 1...Self.mostBits {
      for (symbol, length) in lengths.enumerated() where Int(length) == bits {
        guard code < 1 << bits else { throw .ioError }
        // The first bit of a code is the lowest.
        let reversed = Int(UInt16(code).bitReversed >> (16 - bits))
        for entry in stride(from: reversed, to: 1 << Self.mostBits, by: 1 << bits) {
          entries[entry] = UInt16(symbol << 4 | bits)
        }
        code += 1
      }
      code <<= 1
    }
  }

  @inline(__always)
  func next(_ input: inout BitReader) throws(Errno) -> Int {
    let entry = Int(entries[input.peek(Self.mostBits)])
    if entry == 0 { throw .ioError }
    try input.skip(entry & 15)
    return entry >> 4
  }
}

extension UInt16 {
  fileprivate var bitReversed: UInt16 {
    (0..<16).reduce(0) { $0 | (self >> $1 & 1) << (15 - $1) }
  }
}

/// Reads the compressed bytes of an entry bit by bit, the lowest first.
struct BitReader: ~Copyable {
  private let entry: CompressedEntry
  private var offset: UInt64 = 0
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  private var next = 0
  private var end = 0
  private var bits: UInt64 = 0
  private var count = 0
  private var failure: Errno?

  init(_ entry: CompressedEntry) { self.entry = entry }

  deinit { buffer.deallocate() }

  /// The next bits, with zeros after the end.
  @inline(__always)
  mutating func peek(_ number: Int) -> Int {
    if count < number { fill() }
    return Int(bits & (1 << UInt64(number) - 1))
  }

  /// - Throws: EIO at the end.
  @inline(__always)
  mutating func skip(_ number: Int) throws(Errno) {
    guard number <= count else { throw failure ?? .ioError }
    bits >>= UInt64(number)
    count -= number
  }

  @inline(__always)
  mutating func take(_ number: Int) throws(Errno) -> UInt32 {
    let value = peek(number)
    try skip(number)
    return UInt32(truncatingIfNeeded: value)
  }

  mutating func alignToByte() {
    bits >>= UInt64(count & 7)
    count &= ~7
  }

  private mutating func fill() {
    while count <= 56 {
      if next == end, !readMore() { return }
      bits |= UInt64(buffer[next]) << UInt64(count)
      next += 1
      count += 8
    }
  }

  private mutating func readMore() -> Bool {
    let size = Int(min(UInt64(buffer.count), entry.node.compressedSize - offset))
    if size == 0 { return false }
    do throws(Errno) {
      try entry.source.read(
        into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]), at: entry.start + offset)
    } catch {
      failure = error
      return false
    }
    offset += UInt64(size)
    (next, end) = (0, size)
    return true
  }
}

/// Decodes an entry that is compressed by Deflate64.
final class Deflate64Decoder: EntryDecoder, @unchecked Sendable {
  static let method: UInt16 = 9
  private var stream: Inflate64

  override var cost: Int { 512 << 10 }
  override var verifiesChecksum: Bool { true }

  override init(_ entry: CompressedEntry) throws(Errno) {
    stream = Inflate64(BitReader(entry))
    try super.init(entry)
  }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    try stream.read(into: buffer)
  }
}
