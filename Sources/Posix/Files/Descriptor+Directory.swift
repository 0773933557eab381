import CLinux
import CLibrary

/// An entry listed by getdents64(2).
public struct DirectoryEntry {
  /// The name, valid until the next entry is read.
  public let name: CName
  /// The name's length in bytes, without NUL.
  public let nameLength: Int
  /// The inode number as recorded in the directory.
  public let inode: UInt64
  /// The file type; nil if the file system does not record it (`DT_UNKNOWN`).
  public let kind: FileKind?

  /// An entry that was not read from disk.
  public init(name: CName, nameLength: Int, inode: UInt64, kind: FileKind?) {
    (self.name, self.nameLength, self.inode, self.kind) = (name, nameLength, inode, kind)
  }
}

extension Descriptor {
  /// Lists this directory without `.` and `..`. It must be open for reading, with its offset at 0.
  /// - Throws: errors of getdents64(2); ENOENT for a removed directory.
  public func forEachEntry(_ body: (DirectoryEntry) throws(Errno) -> Void) throws(Errno) {
    try withUnsafeTemporaryBytes(64 * 1024) { buffer throws(Errno) in
      while true {
        let count = try checked { linux_getdents64(rawValue, buffer.baseAddress, buffer.count) }
        if count == 0 { return }
        try Self.parse(UnsafeRawBufferPointer(rebasing: buffer[..<count]), body)
      }
    }
  }

  /// The first names that `forEachEntry` would list: as many as fit a buffer.
  /// - Throws: as `forEachEntry`.
  public func firstNames() throws(Errno) -> [[UInt8]] {
    try withUnsafeTemporaryBytes(4 * 1024) { buffer throws(Errno) in
      let count = try checked { linux_getdents64(rawValue, buffer.baseAddress, buffer.count) }
      var names: [[UInt8]] = []
      try Self.parse(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { entry throws(Errno) in
        names.append([UInt8](bytesOf: entry.name))
      }
      return names
    }
  }

  /// Parses struct linux_dirent64: d_ino (8 bytes), d_off (8), d_reclen (2), d_type (1), d_name.
  private static func parse(
    _ records: UnsafeRawBufferPointer, _ body: (DirectoryEntry) throws(Errno) -> Void
  ) throws(Errno) {
    var offset = 0
    while offset < records.count, let start = records.baseAddress {
      let name = (start + offset + 19).assumingMemoryBound(to: CChar.self)
      let entry = DirectoryEntry(
        name: name, nameLength: strlen(name),
        inode: records.loadUnaligned(fromByteOffset: offset, as: UInt64.self),
        kind: FileKind(rawValue: UInt32(records[offset + 18]) << 12))
      let length = Int(records.loadUnaligned(fromByteOffset: offset + 16, as: UInt16.self))
      // The kernel has checked what a file system returned, and this loop must end in any case.
      if length <= 19 { throw .ioError }
      offset += length
      let isDot = entry.nameLength == 1 && name[0] == 46
      let isDotDot = entry.nameLength == 2 && name[0] == 46 && name[1] == 46
      if !isDot && !isDotDot { try body(entry) }
    }
  }

  /// Whether this directory has an entry with the name. Sends no request to a file system mounted there.
  public func contains(_ name: CName) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try cachedAttributes(of: name)
      return true
    } catch {
      if error == .noSuchFileOrDirectory || error == .notDirectory || error == .fileNameTooLong {
        return false
      }
      throw error
    }
  }

  /// Opens an entry if it is a regular file. Other kinds are not opened, since opening a device may have side effects
  /// and opening a FIFO may block.
  /// - Throws: ELOOP for a symbolic link; EOPNOTSUPP for other kinds.
  public func openRegularFile(_ name: CName, _ flags: OpenFlags) throws(Errno) -> Descriptor {
    let kind = try attributes(of: name).kind
    if kind == .symbolicLink { throw .tooManySymbolicLinkLevels }
    guard kind == .regular else { throw .notSupported }
    let file = try open(name, flags.union([.noFollow, .nonBlocking, .noControllingTerminal]))
    // The entry may have been replaced meanwhile.
    guard try file.attributes().isRegular else { throw .notSupported }
    return file
  }

  /// Calls openat2(2) with `RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS`.
  /// - Throws: ELOOP at a symbolic link; EXDEV outside the directory or its mount; ENOSYS before Linux 5.6.
  public func openBeneath(_ path: CName, _ flags: OpenFlags) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_open_beneath(rawValue, path, flags.openBits) })
  }

  /// Calls openat2(2) with `O_PATH | O_DIRECTORY` and `RESOLVE_NO_SYMLINKS`.
  /// - Parameters:
  ///   - path: an absolute path.
  ///   - mount: set to the directory's mount ID, 0 if unknown.
  /// - Throws: ELOOP at a symbolic link; ENOSYS before Linux 5.6.
  public static func openNoSymlinks(_ path: CName, mount: inout Int) throws(Errno) -> Descriptor {
    var id: UInt64 = 0
    let descriptor = Descriptor(owning: try checked { linux_open_no_symlinks(path, &id) })
    mount = Int(clamping: id)
    return descriptor
  }

  /// Calls mkdir(2) with the permissions that the umask leaves.
  /// - Throws: EEXIST, ENOENT, EACCES, and other errors of mkdir(2).
  public static func makeDirectory(_ path: [UInt8], mode: UInt32) throws(Errno) {
    _ = try withCName(path) { path throws(Errno) in try checked { mkdir(path, mode) } }
  }

  /// Creates an empty entry that only its owner may access, by mkdirat(2), symlinkat(2) or mknodat(2).
  /// - Throws: EEXIST, EACCES, EROFS and other errors of mknod(2).
  public func make(_ name: CName, _ kind: FileKind) throws(Errno) {
    _ = try checked {
      switch kind {
      case .directory: mkdirat(rawValue, name, 0o700)
      case .symbolicLink: symlinkat(".", rawValue, name)
      default: mknodat(rawValue, name, kind.rawValue | 0o600, 0)
      }
    }
  }

  /// Calls unlinkat(2).
  /// - Throws: ENOENT; EBUSY at a mount point; EACCES, EROFS and other errors of unlink(2).
  public func remove(_ name: CName, isDirectory: Bool) throws(Errno) {
    _ = try checked { unlinkat(rawValue, name, isDirectory ? AT_REMOVEDIR : 0) }
  }

  /// Calls renameat(2).
  /// - Throws: as `remove`.
  public func rename(
    _ name: CName, to newName: CName, in directory: borrowing Descriptor
  ) throws(Errno) {
    _ = try checked { renameat(rawValue, name, directory.rawValue, newName) }
  }
}

extension Descriptor {
  /// Calls a function with the name of each directory in this one.
  /// - Throws: errors of getdents64(2), or of statx(2) where the file system does not record the kinds.
  public func forEachDirectory(_ body: ([UInt8]) -> Void) throws(Errno) {
    try forEachEntry { entry throws(Errno) in
      var kind = entry.kind
      if kind == nil { kind = try attributes(of: entry.name).kind }
      if kind != .directory { return }
      body(Array(UnsafeRawBufferPointer(start: entry.name, count: entry.nameLength)))
    }
  }
}
