import CLinux
import Glibc

/// An entry as getdents64(2) lists it; the name is valid until the next one is read.
public struct DirectoryEntry {
  /// The entry's name, which ends with NUL.
  public let name: CName
  /// Bytes in the name, without NUL.
  public let nameLength: Int
  /// The inode number as the directory records it.
  public let inode: UInt64
  /// The kind; nil where the file system does not record it.
  public let kind: FileKind?

  /// An entry of a directory that is no disk's.
  public init(name: CName, nameLength: Int, inode: UInt64, kind: FileKind?) {
    (self.name, self.nameLength, self.inode, self.kind) = (name, nameLength, inode, kind)
  }
}

extension Descriptor {
  /// Lists this directory (which must be open for reading, at its beginning), `.` and `..` left out.
  /// - Throws: what getdents64(2) answers; ENOENT for a directory that was removed.
  public func forEachEntry(_ body: (DirectoryEntry) throws(Errno) -> Void) throws(Errno) {
    try withUnsafeTemporaryBytes(64 * 1024) { buffer throws(Errno) in
      while true {
        let count = try checked { linux_getdents64(rawValue, buffer.baseAddress, buffer.count) }
        if count == 0 { return }
        try Self.walk(UnsafeRawBufferPointer(rebasing: buffer[..<count]), body)
      }
    }
  }

  /// One bufferful: d_ino (8 bytes), d_off (8), d_reclen (2), d_type (1), d_name up to NUL.
  private static func walk(
    _ records: UnsafeRawBufferPointer, _ body: (DirectoryEntry) throws(Errno) -> Void
  ) throws(Errno) {
    var place = 0
    while place < records.count, let start = records.baseAddress {
      let name = (start + place + 19).assumingMemoryBound(to: CChar.self)
      let entry = DirectoryEntry(
        name: name, nameLength: strlen(name),
        inode: records.loadUnaligned(fromByteOffset: place, as: UInt64.self),
        kind: FileKind(rawValue: UInt32(records[place + 18]) << 12))
      place += Int(records.loadUnaligned(fromByteOffset: place + 16, as: UInt16.self))
      let isDot = entry.nameLength == 1 && name[0] == 46
      let isDotDot = entry.nameLength == 2 && name[0] == 46 && name[1] == 46
      if !isDot && !isDotDot { try body(entry) }
    }
  }
}
