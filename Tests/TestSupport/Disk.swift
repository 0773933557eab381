import Glibc
import Posix

/// Changes on disk by path. Only `write` and `chmod` follow a symbolic link in the last component.
extension ByteString {
  /// Passes the path as a C string; a negative result is thrown as a `DiskError` with `errno`.
  @discardableResult
  public func call<Result: SignedInteger>(_ name: String, _ body: (CName) -> Result) throws -> Result {
    do {
      return try withCName(bytes) { path throws(Errno) in
        let result = body(path)
        if result < 0 { throw Errno.current }
        return result
      }
    } catch {
      throw DiskError(name, self, error)
    }
  }

  /// Calls `mkdir(2)`.
  public func makeDirectory(mode: UInt32 = 0o755) throws { try call("mkdir") { mkdir($0, mode) } }

  /// Makes the directory and its missing parents.
  public func makeDirectories() throws {
    if (try? status())?.kind == .directory { return }
    if parent.count > 0 && parent != self { try parent.makeDirectories() }
    try makeDirectory()
  }

  /// Writes a whole file in place, creating it if it is missing.
  public func write(_ content: [UInt8]) throws {
    try withOpen(O_WRONLY | O_CREAT | O_TRUNC) { file in try Self.writeAll(content, to: file, path: self) }
  }

  /// Writes a whole file of UTF-8 text in place.
  public func write(_ text: String) throws { try write([UInt8](text.utf8)) }

  /// Calls `pwrite(2)` on an existing file.
  public func overwrite(_ content: [UInt8], at offset: Int) throws {
    try withOpen(O_WRONLY) { file in
      let count = content.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(offset)) }
      if count != content.count { throw DiskError("pwrite", self, .current) }
    }
  }

  /// Replaces the file atomically by renaming a new one over it.
  public func replace(_ content: [UInt8]) throws {
    let temporary = parent / ByteString(".replace.\(getpid()).\(UInt64.random(in: 0 ... .max))")
    try temporary.write(content)
    try temporary.rename(to: self)
  }

  /// Replaces the file atomically with UTF-8 text.
  public func replace(_ text: String) throws { try replace([UInt8](text.utf8)) }

  /// Calls `symlink(2)`: makes this path a link to the target.
  public func makeLink(to target: ByteString) throws {
    try call("symlink") { path in target.withPointer { symlink($0, path) } }
  }

  /// Calls `link(2)`: makes this path another name of `other`.
  public func makeHardLink(of other: ByteString) throws {
    try call("link") { path in other.withPointer { link($0, path) } }
  }

  /// Calls `mknod(2)`; the mode includes the file type.
  public func makeNode(mode: UInt32, device: UInt64 = 0) throws {
    try call("mknod") { mknod($0, mode, dev_t(device)) }
  }

  /// Makes an overlayfs whiteout: a character device 0:0.
  public func makeWhiteout() throws { try makeNode(mode: FileKind.characterDevice.rawValue | 0o600) }

  /// Calls `rename(2)`.
  public func rename(to other: ByteString) throws {
    try call("rename") { path in other.withPointer { Glibc.rename(path, $0) } }
  }

  /// Exchanges two names with `renameat2(2)` and `RENAME_EXCHANGE`.
  public func exchange(with other: ByteString) throws { try rename(to: other, flags: 2) }

  /// Calls `renameat2(2)`.
  public func rename(to other: ByteString, flags: UInt32) throws {
    let currentDirectory: CInt = -100  // AT_FDCWD
    _ = try call("renameat2") { path in
      other.withPointer { GnuCalls.renameat2(currentDirectory, path, currentDirectory, $0, flags) }
    }
  }

  /// Calls `unlink(2)`.
  public func remove() throws { try call("unlink") { unlink($0) } }

  /// Calls `rmdir(2)`.
  public func removeDirectory() throws { try call("rmdir") { rmdir($0) } }

  /// Calls `chmod(2)`.
  public func setMode(_ mode: UInt32) throws { try call("chmod") { chmod($0, mode) } }

  /// Calls `lchown(2)`.
  public func setOwner(_ owner: UInt32, group: UInt32) throws {
    try call("lchown") { lchown($0, owner, group) }
  }

  /// Calls `utimensat(2)` with `AT_SYMLINK_NOFOLLOW`; sets both mtime and atime.
  public func setModified(_ modified: TimeSpec) throws {
    let time = timespec(tv_sec: Int(modified.seconds), tv_nsec: Int(modified.nanoseconds))
    try call("utimensat") { path in utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) }
  }

  /// Calls `truncate(2)`.
  public func setSize(_ size: Int) throws { try call("truncate") { truncate($0, off_t(size)) } }

  /// Opens the path, with `O_CLOEXEC`, for the duration of the body.
  public func withOpen<Result>(_ flags: CInt, _ body: (CInt) throws -> Result) throws -> Result {
    let file = try call("open") { Glibc.open($0, flags | O_CLOEXEC, 0o644) }
    defer { close(file) }
    return try body(file)
  }

  func withPointer<Result>(_ body: (CName) -> Result) -> Result {
    (bytes + [0]).withUnsafeBytes { buffer in
      // The terminating NUL guarantees a base address.
      body(buffer.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: CChar.self))
    }
  }

  private static func writeAll(_ content: [UInt8], to file: CInt, path: ByteString) throws {
    var done = 0
    while done < content.count {
      let count = content[done...].withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count < 0 { throw DiskError("write", path, .current) }
      done += count
    }
  }
}
