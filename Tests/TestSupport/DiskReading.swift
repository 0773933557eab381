import Glibc
import Posix

/// The result of `lstat(2)`.
public struct StatResult: Equatable, Sendable {
  /// The type; nil if unknown.
  public var kind: FileKind?
  /// The permission bits, set-id and sticky included.
  public var permissions: UInt32
  /// User id.
  public var owner: UInt32
  /// Group id.
  public var group: UInt32
  /// Size in bytes.
  public var size: Int64
  /// st_nlink.
  public var links: UInt64
  /// st_ino.
  public var inode: UInt64
  /// st_dev.
  public var device: UInt64
  /// st_rdev.
  public var rdev: UInt64
  /// 512-byte blocks.
  public var blocks: Int64
  /// st_mtim.
  public var modified: TimeSpec
  /// st_ctim.
  public var changed: TimeSpec

  init(_ raw: stat) {
    kind = FileKind(rawValue: raw.st_mode & 0o170000)
    permissions = raw.st_mode & 0o7777
    owner = raw.st_uid
    group = raw.st_gid
    size = Int64(raw.st_size)
    links = UInt64(raw.st_nlink)
    inode = UInt64(raw.st_ino)
    device = UInt64(raw.st_dev)
    rdev = UInt64(raw.st_rdev)
    blocks = Int64(raw.st_blocks)
    modified = TimeSpec(seconds: Int64(raw.st_mtim.tv_sec), nanoseconds: UInt32(raw.st_mtim.tv_nsec))
    changed = TimeSpec(seconds: Int64(raw.st_ctim.tv_sec), nanoseconds: UInt32(raw.st_ctim.tv_nsec))
  }
}

/// One entry of a listing.
public struct ListedEntry: Sendable, Hashable {
  /// Its name.
  public let name: ByteString
  /// d_ino.
  public let inode: UInt64
  /// d_type; nil for DT_UNKNOWN.
  public let kind: FileKind?
}

extension ByteString {
  /// Calls `lstat(2)`.
  public func status() throws -> StatResult {
    var raw = stat()
    try call("lstat") { lstat($0, &raw) }
    return StatResult(raw)
  }

  /// Calls `stat(2)`.
  public func followedStatus() throws -> StatResult {
    var raw = stat()
    try call("stat") { stat($0, &raw) }
    return StatResult(raw)
  }

  /// Calls `fstat(2)`.
  public static func status(of file: CInt) throws -> StatResult {
    var raw = stat()
    if fstat(file, &raw) < 0 { throw DiskError("fstat", "", .current) }
    return StatResult(raw)
  }

  /// Whether an entry of any type exists.
  public var exists: Bool { (try? status()) != nil }

  /// Reads the whole file.
  public func read() throws -> [UInt8] {
    try withOpen(O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY) { try Self.readAll($0, path: self) }
  }

  /// Reads the whole file as text.
  public func readText() throws -> String { String(decoding: try read(), as: UTF8.self) }

  /// Reads an open file from its offset to the end.
  public static func readAll(_ file: CInt, path: ByteString = "") throws -> [UInt8] {
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 128 * 1024)
    while true {
      let count = buffer.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress, $0.count) }
      if count < 0 { throw DiskError("read", path, .current) }
      if count == 0 { return content }
      content += buffer[..<count]
    }
  }

  /// Calls `readlink(2)`.
  public func linkTarget() throws -> ByteString {
    var buffer = [CChar](repeating: 0, count: 4097)
    let count = try call("readlink") { path in
      buffer.withUnsafeMutableBufferPointer { readlink(path, $0.baseAddress.unsafelyUnwrapped, $0.count) }
    }
    return ByteString(buffer[..<count].map { UInt8(bitPattern: $0) })
  }

  /// The entries in the order of `getdents64(2)`, without `.` and `..`.
  public func list() throws -> [ListedEntry] {
    var entries: [ListedEntry] = []
    do {
      let directory = try withCName(bytes) { path throws(Errno) in
        try Descriptor.open(path, [.read, .directory, .noFollow]).release()
      }
      try Descriptor(owning: directory).forEachEntry { entry throws(Errno) in
        entries.append(
          ListedEntry(
            name: ByteString(cString: entry.name, count: entry.nameLength), inode: entry.inode,
            kind: entry.kind))
      }
    } catch {
      throw DiskError("list", self, error)
    }
    return entries
  }

  /// The sorted names of the entries.
  public func names() throws -> [ByteString] { try list().map(\.name).sorted() }
}

extension ByteString {
  /// Calls `pread(2)`.
  /// - Returns: the number of bytes read.
  public static func readPart(_ buffer: inout [UInt8], of file: CInt, at offset: Int64) throws -> Int {
    let count = buffer.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, off_t(offset)) }
    if count < 0 { throw DiskError("pread", "", .current) }
    return count
  }
}
