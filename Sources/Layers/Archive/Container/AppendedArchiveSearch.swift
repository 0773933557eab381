#if Archives
import Posix

/// Looks for a tar archive that follows the end of another one, as `cat a.tar b.tar` makes it. What reads tar archives stops
/// at the first end, unless it is asked to ignore zeros.
struct AppendedArchiveSearch {
  /// Whether a tar archive follows.
  private(set) var isFound = false
  /// Whether more bytes can change that: of zeros it passes 1 MiB.
  var isUndecided: Bool { !isFound && left > 0 }

  private static let blockSize = ContainerFormat.blockSize
  /// The bytes of a block of which a part was passed.
  private var block: [UInt8] = []
  private var left = 1 << 20

  /// Passes the next bytes, the first of which are the beginning of a block.
  mutating func pass(_ bytes: UnsafeRawBufferPointer) {
    var start = 0
    while isUndecided, start < bytes.count {
      let count = min(Self.blockSize - block.count, bytes.count - start)
      block += bytes[start..<start + count]
      start += count
      if block.count == Self.blockSize { decide() }
    }
  }

  private mutating func decide() {
    left -= Self.blockSize
    if block.contains(where: { $0 != 0 }) {
      isFound = block.withUnsafeBytes { ContainerFormat.isTar($0) }
      left = 0
    }
    block.removeAll(keepingCapacity: true)
  }
}

extension AppendedArchiveSearch {
  /// Searches the file from an offset on.
  init(_ source: ArchiveSource, from offset: UInt64) {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { bytes.deallocate() }
    var offset = offset
    while isUndecided, offset < source.size {
      let part = UnsafeMutableRawBufferPointer(
        rebasing: bytes[..<Int(min(UInt64(bytes.count), source.size - offset))])
      guard (try? source.read(into: part, at: offset)) != nil else { return }
      pass(UnsafeRawBufferPointer(part))
      offset += UInt64(part.count)
    }
  }

  /// Searches the rest of a stream, which is read to its end.
  /// - Parameter position: the offset of what its reader has not used.
  init(_ stream: ContainerStream, from position: UInt64) throws(Errno) {
    let unused = Int(clamping: stream.delivered - min(position, stream.delivered))
    if unused <= stream.lastBytes.count {
      pass(UnsafeRawBufferPointer(rebasing: stream.lastBytes.suffix(unused)))
    } else {
      // The beginning is in libarchive's memory.
      let missing = (unused - stream.lastBytes.count) % Self.blockSize
      pass(
        UnsafeRawBufferPointer(
          rebasing: stream.lastBytes.dropFirst(missing == 0 ? 0 : Self.blockSize - missing)))
    }
    while true {
      let bytes = try stream.next()
      if bytes.isEmpty { return }
      pass(bytes)
    }
  }
}
#endif
