#if Archives
import CArchive
import Posix

/// Cpio archives that follow each other, as in an initramfs: the kernel reads one after the other. Zeros may lie between
/// them, and the last may be compressed.
extension ContainerReader {
  /// Zeros between two parts, in bytes.
  private static let longestGap: UInt64 = 1 << 20

  /// Goes to the part that follows the one that has ended.
  /// - Returns: false if there is none.
  /// - Throws: EIO; EOPNOTSUPP if its compression cannot be read; ENOMEM.
  func beginNextPart() throws(Errno) -> Bool {
    format.compression == .none ? try beginPartInFile() : try beginPartInStream()
  }

  private func beginPartInFile() throws(Errno) -> Bool {
    guard let position = UInt64(exactly: position), let start = try firstNonzero(from: position) else {
      return false
    }
    let rest: ArchiveSource
    var found: ContainerFormat
    do throws(ArchiveError) {
      rest = try ArchiveSource(inside: source, at: start, size: source.size - start)
      guard let format = try ContainerFormat.detect(in: rest) else { return false }
      found = format
    } catch { throw .ioError }
    guard found.kind == .cpio || found.kind == .tar && found.compression != .none else { return false }
    found.kind = .cpio
    if found.compression == .none {
      try begin(FileStream(source, at: start), found, base: start)
    } else {
      do throws(Errno) { try begin(Self.stream(of: rest, found), found, base: 0) } catch {
        format = found
        throw error
      }
    }
    return true
  }

  /// - Returns: nil if there is nothing but zeros, or too many of them.
  private func firstNonzero(from start: UInt64) throws(Errno) -> UInt64? {
    let end = min(source.size, start.addingReportingOverflow(Self.longestGap).partialValue)
    guard start < end else { return nil }
    return try withUnsafeTemporaryBytes(4096) { buffer throws(Errno) in
      var offset = start
      while offset < end {
        let part = UnsafeMutableRawBufferPointer(
          rebasing: buffer[..<Int(min(UInt64(buffer.count), end - offset))])
        try source.read(into: part, at: offset)
        if let index = part.firstIndex(where: { $0 != 0 }) { return offset + UInt64(index) }
        offset += UInt64(part.count)
      }
      return nil
    }
  }

  private func beginPartInStream() throws(Errno) -> Bool {
    guard let position = UInt64(exactly: position), position <= stream.delivered else { return false }
    // More than that would be in libarchive's memory, but it buffers no more of a cpio archive than it uses.
    var unused = Int(clamping: stream.delivered - position)
    guard unused <= stream.lastBytes.count else { return false }
    var gap: UInt64 = 0
    while gap < Self.longestGap {
      let rest = stream.lastBytes.suffix(unused)
      if let start = rest.firstIndex(where: { $0 != 0 }) {
        stream.putBack(stream.lastBytes.count - start)
        try begin(stream, format, base: stream.delivered)
        return true
      }
      gap += UInt64(unused)
      unused = try stream.deliver().count
      if unused == 0 { return false }
    }
    return false
  }
}
#endif
