import Fuse
import Posix

/// Held lines as bytes, for a successor.
extension WriteReassembler.PartialLine {
  /// Where its result is recorded: as that of a request that the kernel cannot have.
  var origin: ControlLog.Origin {
    ControlLog.Origin(request: 1 << 62 | id, start: 0, end: UInt64(line.count))
  }

  private static let buffer: UInt64 = 1
  private static let split: UInt64 = 2

  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    func append(_ value: UInt64) { withUnsafeBytes(of: value) { bytes += $0 } }
    append(id)
    append(UInt64(writer.user) << 32 | UInt64(UInt32(bitPattern: writer.thread)))
    append(UInt64(bitPattern: end))
    append((isBuffer ? Self.buffer : 0) | (isSplit ? Self.split : 0))
    append(UInt64(line.count))
    return bytes + line
  }

  init?(from reader: inout ByteReader) {
    guard let id = reader.next(), let writer = reader.next(), let end = reader.next(),
      let flags = reader.next(),
      let count = reader.next(), let line = reader.next(count)
    else { return nil }
    self.init(
      id: id,
      writer: Caller(
        user: UInt32(writer >> 32), thread: Int32(bitPattern: UInt32(truncatingIfNeeded: writer))),
      line: line, end: Int64(bitPattern: end), isBuffer: flags & Self.buffer != 0,
      isSplit: flags & Self.split != 0, deadline: TimeSpec.monotonic.advanced(byMilliseconds: 1000))
  }
}

/// Reads numbers and bytes in order.
struct ByteReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  /// nil at the end.
  mutating func next() -> UInt64? {
    next(8).map { bytes in bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) } }
  }

  mutating func next(_ count: UInt64) -> [UInt8]? {
    guard count <= UInt64(rest.count) else { return nil }
    defer { rest = rest.dropFirst(Int(count)) }
    return Array(rest.prefix(Int(count)))
  }
}
