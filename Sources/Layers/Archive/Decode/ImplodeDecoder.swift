import Posix

/// Decodes Implode (APPNOTE.TXT of the zip format, 5.3), by which PKZIP compressed before version 2.
final class ImplodeDecoder: EntryDecoder, @unchecked Sendable {
  static let method: UInt16 = 6

  private var input: BitReader
  private let hasLiterals: Bool
  private var literals = HuffmanTable(mostBits: 16, isInverted: true)
  private var lengths = HuffmanTable(mostBits: 16, isInverted: true)
  private var distances = HuffmanTable(mostBits: 16, isInverted: true)
  /// The bits of a distance that have no code.
  private let distanceBits: Int
  private let shortestMatch: Int
  private var hasTables = false
  /// The last 8 KiB. Matches may begin before the content, where zeros are assumed.
  private let window = UnsafeMutablePointer<UInt8>.allocate(capacity: windowSize)
  private var matchLength = 0
  private var matchDistance = 0

  private static let windowSize = 1 << 13

  override var cost: Int { 512 << 10 }
  override var verifiesChecksum: Bool { true }

  override init(_ entry: CompressedEntry) throws(Errno) {
    input = BitReader(entry)
    hasLiterals = entry.node.flags.contains(.hasLiteralTable)
    shortestMatch = hasLiterals ? 3 : 2
    distanceBits = entry.node.flags.contains(.hasEndMarker) ? 7 : 6
    window.initialize(repeating: 0, count: Self.windowSize)
    try super.init(entry)
  }

  deinit { window.deallocate() }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    if !hasTables { try readTables() }
    // The stream does not mark its end.
    let count = Int(min(UInt64(buffer.count), entry.node.size - position))
    var done = 0
    while done < count {
      if matchLength > 0 {
        matchLength -= 1
        put(window[(Int(position) + done - matchDistance) & (Self.windowSize - 1)], buffer, &done)
      } else if try input.take(1) == 1 {
        put(try readLiteral(), buffer, &done)
      } else {
        try readMatch()
      }
    }
    return done
  }

  @inline(__always)
  private func put(_ byte: UInt8, _ buffer: UnsafeMutableRawBufferPointer, _ done: inout Int) {
    buffer[done] = byte
    window[(Int(position) + done) & (Self.windowSize - 1)] = byte
    done += 1
  }

  private func readLiteral() throws(Errno) -> UInt8 {
    UInt8(truncatingIfNeeded: hasLiterals ? try literals.next(&input) : Int(try input.take(8)))
  }

  private func readMatch() throws(Errno) {
    let low = Int(try input.take(distanceBits))
    matchDistance = try distances.next(&input) << distanceBits + low + 1
    matchLength = try lengths.next(&input)
    if matchLength == 63 { matchLength += Int(try input.take(8)) }
    matchLength += shortestMatch
  }

  private func readTables() throws(Errno) {
    if hasLiterals { try literals.build(readLengths(256)[...]) }
    try lengths.build(readLengths(64)[...])
    try distances.build(readLengths(64)[...])
    hasTables = true
  }

  /// The code lengths of so many symbols: a number of bytes, each with a length and how often it is repeated.
  private func readLengths(_ count: Int) throws(Errno) -> [UInt8] {
    var lengths: [UInt8] = []
    for _ in 0...(try input.take(8)) {
      let byte = UInt8(truncatingIfNeeded: try input.take(8))
      lengths += [UInt8](repeating: byte & 15 + 1, count: Int(byte >> 4) + 1)
    }
    guard lengths.count == count else { throw .ioError }
    return lengths
  }
}
