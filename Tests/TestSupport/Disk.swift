import Glibc
import Posix

/// Making and changing things on disk, by path; nothing follows a symbolic link in the last component but
/// `write` and `chmod`.
extension ByteString {
  /// Calls with the path as a C string and turns -1 into an error.
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

  /// mkdir(2).
  public func makeDirectory(mode: UInt32 = 0o755) throws { try call("mkdir") { mkdir($0, mode) } }

  /// The directory and those above it that are missing.
  public func makeDirectories() throws {
    if (try? status())?.kind == .directory { return }
    if parent.count > 0 && parent != self { try parent.makeDirectories() }
    try makeDirectory()
  }

  /// Writes a whole file, made if missing, in place if there.
  public func write(_ content: [UInt8]) throws {
    try withOpen(O_WRONLY | O_CREAT | O_TRUNC) { file in try Self.writeAll(content, to: file, path: self) }
  }

  /// Writes a whole file of UTF-8 text.
  public func write(_ text: String) throws { try write([UInt8](text.utf8)) }

  /// Writes bytes at an offset of an existing file.
  public func overwrite(_ content: [UInt8], at offset: Int) throws {
    try withOpen(O_WRONLY) { file in
      let count = content.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(offset)) }
      if count != content.count { throw DiskError("pwrite", self, .current) }
    }
  }

  /// Puts a file there in one step, by a rename over what is there.
  public func replace(_ content: [UInt8]) throws {
    let fresh = parent / ByteString(".replace.\(getpid()).\(UInt64.random(in: 0 ... .max))")
    try fresh.write(content)
    try fresh.rename(to: self)
  }

  /// Puts a file of text there in one step.
  public func replace(_ text: String) throws { try replace([UInt8](text.utf8)) }

  /// symlink(2): makes this path a link to the target.
  public func makeLink(to target: ByteString) throws {
    try call("symlink") { path in target.withPointer { symlink($0, path) } }
  }

  /// link(2): makes this path one more name of the other.
  public func makeHardLink(of other: ByteString) throws {
    try call("link") { path in other.withPointer { link($0, path) } }
  }

  /// mknod(2), with the type in the mode.
  public func makeNode(mode: UInt32, device: UInt64 = 0) throws {
    try call("mknod") { mknod($0, mode, dev_t(device)) }
  }

  /// overlayfs's "no such entry": a character device 0:0.
  public func makeWhiteout() throws { try makeNode(mode: FileKind.characterDevice.rawValue | 0o600) }

  /// rename(2).
  public func rename(to other: ByteString) throws {
    try call("rename") { path in other.withPointer { Glibc.rename(path, $0) } }
  }

  /// unlink(2).
  public func remove() throws { try call("unlink") { unlink($0) } }

  /// rmdir(2).
  public func removeDirectory() throws { try call("rmdir") { rmdir($0) } }

  /// chmod(2).
  public func setMode(_ mode: UInt32) throws { try call("chmod") { chmod($0, mode) } }

  /// lchown(2).
  public func setOwner(_ owner: UInt32, group: UInt32) throws {
    try call("lchown") { lchown($0, owner, group) }
  }

  /// Sets the time of the last change and, to the same, that of the last access.
  public func setModified(_ moment: TimeSpec) throws {
    let time = timespec(tv_sec: Int(moment.seconds), tv_nsec: Int(moment.nanoseconds))
    try call("utimensat") { path in utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) }
  }

  /// truncate(2).
  public func setSize(_ size: Int) throws { try call("truncate") { truncate($0, off_t(size)) } }

  /// Runs the body with a descriptor of the path.
  public func withOpen<Result>(_ flags: CInt, _ body: (CInt) throws -> Result) throws -> Result {
    let file = try call("open") { Glibc.open($0, flags | O_CLOEXEC, 0o644) }
    defer { close(file) }
    return try body(file)
  }

  func withPointer<Result>(_ body: (CName) -> Result) -> Result {
    (bytes + [0]).withUnsafeBytes { buffer in
      // The terminating NUL makes sure that there is a base address.
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
