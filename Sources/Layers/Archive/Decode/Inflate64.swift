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
  private var literals = HuffmanTable(mostBits: 15)
  private var distances = HuffmanTable(mostBits: 15)
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
