#if Archives
import Posix

/// Yields the target of a symbolic link.
final class LinkTargetDecoder: EntryDecoder, @unchecked Sendable {
  private let target: [UInt8]

  init(_ entry: CompressedEntry, _ target: [UInt8]) throws(Errno) {
    self.target = target
    try super.init(entry)
  }

  override var cost: Int { 0 }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let rest = target[Int(position)...].prefix(buffer.count)
    buffer.copyBytes(from: rest)
    return rest.count
  }
}

/// Reads an entry of a plain tar archive, whose content nothing verifies: only while the file is the one that was
/// indexed are its bytes those of the entry.
final class InPlaceDecoder: EntryDecoder, @unchecked Sendable {
  /// Of a file with holes.
  private let reader: ContainerReader?

  init(_ entry: CompressedEntry, _ format: ContainerFormat) throws(Errno) {
    if entry.node.isStored {
      reader = nil
    } else {
      let opened = try ContainerReader(entry.source, format, at: entry.node.offset)
      guard try opened.nextHeader() else { throw .ioError }
      reader = opened
    }
    try super.init(entry)
  }

  override func passHole() throws(Errno) -> UInt64 {
    guard let reader, position < goal else { return 0 }
    return try reader.skipHole(atMost: goal - position)
  }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    var count = Int(min(UInt64(buffer.count), entry.node.size - position))
    if let reader {
      count = try reader.read(into: buffer)
    } else {
      let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
      try entry.source.read(into: part, at: entry.node.offset + position)
    }
    guard entry.source.isUnchanged else { throw .ioError }
    return count
  }
}

/// Decodes an entry that can be reached only by decoding what precedes it.
final class SequentialDecoder: EntryDecoder, @unchecked Sendable {
  private let walk: ContainerWalk
  /// Decoded bytes that follow `position`. Guarded by the walk's lock, since another entry's decoder may pass this one.
  private var ready = ReadyBytes()
  /// The length of a hole that follows `position`; then nothing is ready. Guarded as `ready`.
  private var hole: UInt64 = 0
  /// The offset of the first byte that is missing. Guarded as `ready`.
  private(set) var wantedOffset: UInt64 = 0
  /// The number of the entry.
  var ordinal: UInt64 { entry.node.offset }

  override var verifiesChecksum: Bool { true }
  override var cost: Int { Self.usualCost + Int(clamping: min(entry.node.size, ArchiveContent.smallSize)) }

  init(_ entry: CompressedEntry, _ walk: ContainerWalk) throws(Errno) {
    self.walk = walk
    try super.init(entry)
    walk.insert(self)
  }

  override func passHole() throws(Errno) -> UInt64 {
    walk.withLock {
      defer { hole = 0 }
      return hole
    }
  }

  override func advance() throws(Errno) -> Bool { try walk.advance(self) }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    while try !walk.advance(self) {}
    return walk.withLock { ready.take(into: buffer) }
  }

  // MARK: - With the walk's lock held

  var isReady: Bool { ready.count > 0 || hole > 0 || wantedOffset >= entry.node.size }
  var wantsAll: Bool { wantedOffset == 0 }

  /// To be called only if `isReady` is false.
  func deliver(_ bytes: [UInt8]) {
    ready = ReadyBytes(bytes)
    wantedOffset += UInt64(bytes.count)
  }

  /// To be called only if `isReady` is false.
  func deliverHole(_ count: UInt64) {
    hole = count
    wantedOffset += count
  }
}

/// Bytes of which the first were taken.
private struct ReadyBytes {
  private var bytes: [UInt8] = []
  private var taken = 0

  init(_ bytes: [UInt8] = []) { self.bytes = bytes }

  var count: Int { bytes.count - taken }

  mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let part = bytes[taken...].prefix(buffer.count)
    buffer.copyBytes(from: part)
    taken += part.count
    if count == 0 { (bytes, taken) = ([], 0) }
    return part.count
  }
}
#endif
