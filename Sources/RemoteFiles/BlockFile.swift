import CLibrary
import Posix

/// The blocks of one state of an object, in a file: a header, a table of checksums, and the blocks at their offsets.
///
/// A block counts once its checksum is in the table, which is written after it, and only if its bytes have that checksum. So
/// a process that ends at any moment, a disk that loses what was written last, and other processes that write the same
/// blocks or remove them do no harm.
final class BlockFile: Sendable {
  /// What the file says of the object.
  struct Header: Equatable, Sendable {
    /// Of the URL, twice hashed.
    var url: (UInt64, UInt64)
    var size: UInt64
    var validator: Validator
    /// Nanoseconds since the epoch.
    var modified: Int64
    /// Whether the server has no ranges, so that the object was downloaded as a whole.
    var isWhole: Bool

    static func == (left: Header, right: Header) -> Bool {
      left.url == right.url && left.size == right.size && left.validator == right.validator
        && left.isWhole == right.isWhole
    }
  }

  static let blockSize = 256 << 10
  /// Larger objects are refused, in bytes: their tables would be absurdly large.
  static let largestObject: UInt64 = 16 << 40

  let header: Header
  let descriptor: Descriptor
  private static let headerSize = 4096
  private let seed: UInt64
  private let dataStart: UInt64

  var blockCount: Int { Self.blockCount(header.size) }

  private static func blockCount(_ size: UInt64) -> Int {
    Int((size + UInt64(blockSize) - 1) / UInt64(blockSize))
  }

  /// A file with a header, or a new one that gets it.
  init(_ descriptor: consuming Descriptor, _ header: Header) {
    self.header = header
    self.descriptor = descriptor
    seed = mixedHash(header.url.0, header.url.1, header.size)
    let table = UInt64(Self.headerSize + 8 * Self.blockCount(header.size))
    dataStart = (table + 4095) / 4096 * 4096
  }

  /// Writes the header to a new file.
  func begin() throws(Errno) {
    let encoded = header.encoded
    try encoded.withBytes { bytes throws(Errno) in try descriptor.write(bytes, at: 0) }
    try descriptor.resize(dataStart + header.size)
  }

  /// Reads the header of a file; nil if it has none.
  static func header(of descriptor: borrowing Descriptor) -> Header? {
    var bytes = [UInt8](repeating: 0, count: headerSize)
    let count = bytes.withUnsafeMutableBytes { try? descriptor.read(into: $0, at: 0) }
    return count == headerSize ? Header(encoded: bytes) : nil
  }

  func range(of block: Int) -> Range<UInt64> {
    let start = UInt64(block) * UInt64(Self.blockSize)
    return start..<min(header.size, start + UInt64(Self.blockSize))
  }

  private func checksum(of bytes: UnsafeRawBufferPointer, _ block: Int) -> UInt64 {
    BlockChecksum.of(bytes, seed: seed &+ UInt64(block))
  }

  /// Whether the table has the block.
  func contains(_ block: Int) -> Bool { recorded(block) != 0 }

  private func recorded(_ block: Int) -> UInt64 {
    var sum: UInt64 = 0
    let count = pread(descriptor.rawValue, &sum, 8, off_t(Self.headerSize + 8 * block))
    return count == 8 ? sum : 0
  }

  /// - Returns: nil if the block is missing or damaged.
  func read(_ block: Int) -> [UInt8]? {
    let sum = recorded(block)
    if sum == 0 { return nil }
    let range = range(of: block)
    var bytes = [UInt8](repeating: 0, count: range.count)
    let offset = Int64(dataStart + range.lowerBound)
    let count = bytes.withUnsafeMutableBytes { try? descriptor.read(into: $0, at: offset) }
    guard count == range.count, bytes.withUnsafeBytes({ checksum(of: $0, block) }) == sum else { return nil }
    return bytes
  }

  /// - Throws: ENOSPC and other errors of pwrite(2).
  func write(_ bytes: UnsafeRawBufferPointer, _ block: Int) throws(Errno) {
    try descriptor.write(bytes, at: Int64(dataStart + range(of: block).lowerBound))
    try setChecksum(checksum(of: bytes, block), block)
  }

  private func setChecksum(_ sum: UInt64, _ block: Int) throws(Errno) {
    try withUnsafeTemporaryBytes(8) { bytes throws(Errno) in
      bytes.storeBytes(of: sum, as: UInt64.self)
      try descriptor.write(UnsafeRawBufferPointer(bytes), at: Int64(Self.headerSize + 8 * block))
    }
  }

  /// Frees the space of a block.
  func remove(_ block: Int) {
    try? setChecksum(0, block)
    let range = range(of: block)
    try? descriptor.punchHole(at: Int64(dataStart + range.lowerBound), count: Int64(range.count))
  }

  /// The bytes that the file has on disk.
  var usedBytes: UInt64 { (try? descriptor.attributes()).map { $0.blocks * 512 } ?? 0 }
}

extension BlockFile.Header {
  private static let magic: UInt64 = 0x3156_4C42_5346_4E42  // BNFSBLV1
  private static let wordCount = 9

  /// Words of 8 bytes: magic number, the URL's hashes, size, time, kind, the lengths of both validators, and a checksum of
  /// what precedes; then the validators. With zeros up to the size of a header.
  fileprivate var encoded: [UInt8] {
    let texts = validator.entityTag + validator.modified
    let words: [UInt64] = [
      Self.magic, url.0, url.1, size, UInt64(bitPattern: modified), isWhole ? 1 : 0,
      UInt64(validator.entityTag.count), UInt64(validator.modified.count),
    ]
    let start = words.flatMap { word in withUnsafeBytes(of: word) { Array($0) } }
    let sum = BlockChecksum.of(start + texts, seed: Self.magic)
    let bytes = start + withUnsafeBytes(of: sum) { Array($0) } + texts
    return bytes + [UInt8](repeating: 0, count: 4096 - bytes.count)
  }

  /// - Returns: nil if it is damaged.
  fileprivate init?(encoded bytes: [UInt8]) {
    let words = bytes.withUnsafeBytes { bytes in
      (0..<Self.wordCount).map { bytes.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self) }
    }
    let textStart = 8 * Self.wordCount
    guard words[0] == Self.magic, words[6] <= 1024, words[7] <= 1024, words[3] <= BlockFile.largestObject
    else { return nil }
    let (tag, modified) = (Int(words[6]), Int(words[7]))
    let texts = Array(bytes[textStart..<textStart + tag + modified])
    guard BlockChecksum.of(Array(bytes[..<(textStart - 8)]) + texts, seed: Self.magic) == words[8] else {
      return nil
    }
    self.init(
      url: (words[1], words[2]), size: words[3],
      validator: Validator(entityTag: Array(texts[..<tag]), modified: Array(texts[tag...])),
      modified: Int64(bitPattern: words[4]), isWhole: words[5] == 1)
  }
}
