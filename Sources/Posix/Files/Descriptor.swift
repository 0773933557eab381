import CLinux
import CLibrary

/// An owned file descriptor, closed at the end of its lifetime.
public struct Descriptor: ~Copyable, Sendable {
  /// The file descriptor; non-negative.
  public let rawValue: CInt

  /// Takes ownership of an open file descriptor.
  public init(owning rawValue: CInt) { self.rawValue = rawValue }

  deinit { close(rawValue) }

  /// Gives up ownership.
  /// - Returns: the file descriptor, which the caller has to close.
  public consuming func release() -> CInt {
    let number = rawValue
    discard self
    return number
  }

  /// Runs the body with a descriptor that stays open and belongs to the caller.
  @inline(__always)
  public static func withBorrowed<Result, Failure: Error>(
    _ rawValue: CInt, _ body: (borrowing Descriptor) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let descriptor = Descriptor(owning: rawValue)
    do throws(Failure) {
      let result = try body(descriptor)
      _ = descriptor.release()
      return result
    } catch {
      _ = descriptor.release()
      throw error
    }
  }

  /// Another descriptor of the same open file.
  /// - Throws: EMFILE.
  public static func duplicate(of file: CInt) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { fcntl(file, F_DUPFD_CLOEXEC, 0) })
  }

  /// Calls socketpair(2) for two sockets that are closed on exec.
  /// - Parameter type: such as `SOCK_STREAM`, with further flags.
  /// - Returns: the descriptors, which the caller has to own.
  /// - Throws: EMFILE, ENFILE.
  public static func socketPair(_ type: UInt32) throws(Errno) -> (CInt, CInt) {
    var ends: [CInt] = [-1, -1]
    _ = try checked { socketpair(AF_UNIX, CInt(type | SOCK_CLOEXEC.rawValue), 0, &ends) }
    return (ends[0], ends[1])
  }

  /// Calls open(2).
  public static func open(_ path: CName, _ flags: OpenFlags) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_openat(AT_FDCWD, path, flags.openBits | O_CLOEXEC) })
  }

  /// Calls openat(2).
  public func open(_ name: CName, _ flags: OpenFlags) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_openat(rawValue, name, flags.openBits | O_CLOEXEC) })
  }

  /// Calls open(2).
  public static func open(_ path: [UInt8], _ flags: OpenFlags) throws(Errno) -> Descriptor {
    try withCName(path) { path throws(Errno) in try open(path, flags) }
  }

  /// Calls openat(2).
  public func open(_ name: [UInt8], _ flags: OpenFlags) throws(Errno) -> Descriptor {
    try withCName(name) { name throws(Errno) in try open(name, flags) }
  }

  /// Opens the same file again, also from an `O_PATH` descriptor.
  public func reopened(_ flags: OpenFlags) throws(Errno) -> Descriptor {
    try Descriptor.open(procPath, flags)
  }

  /// `/proc/self/fd/N`, which stays valid after a rename or unlink.
  public var procPath: [UInt8] { Array("/proc/self/fd/\(rawValue)".utf8) }
}

extension Descriptor {
  /// Calls statx(2) with `AT_EMPTY_PATH`.
  public func attributes() throws(Errno) -> FileStatus {
    var raw = linux_attributes()
    _ = try checked { linux_fstatx(rawValue, &raw) }
    return FileStatus(raw)
  }

  /// Calls statx(2) with `AT_SYMLINK_NOFOLLOW` for an entry of this directory.
  public func attributes(of name: CName) throws(Errno) -> FileStatus {
    var raw = linux_attributes()
    _ = try checked { linux_statx(rawValue, name, &raw) }
    return FileStatus(raw)
  }

  /// Calls statx(2) with `AT_STATX_DONT_SYNC`: a FUSE or network file system sends no request to its server.
  public func cachedAttributes() throws(Errno) -> FileStatus {
    var raw = linux_attributes()
    _ = try checked { linux_cached_statx(rawValue, &raw) }
    return FileStatus(raw)
  }

  /// As `attributes(of:)`, with `AT_STATX_DONT_SYNC`.
  public func cachedAttributes(of name: CName) throws(Errno) -> FileStatus {
    var raw = linux_attributes()
    _ = try checked { linux_cached_statx_at(rawValue, name, &raw) }
    return FileStatus(raw)
  }

  /// Sets the modification time to its current value as cached by the kernel, which sends `IN_ATTRIB`.
  /// - Parameter includingAccess: whether to set the access time likewise.
  /// - Throws: EPERM unless the caller owns the file; EROFS; EINVAL before Linux 5.8.
  public func rewriteTimes(includingAccess: Bool) throws(Errno) {
    _ = try checked { linux_rewrite_times(rawValue, includingAccess) }
  }

  /// Calls readlinkat(2) for a symbolic link opened with `pathOnly`.
  public func linkTarget() throws(Errno) -> [UInt8] {
    // PATH_MAX bounds what symlink(2) accepts on every Linux file system.
    try withUnsafeTemporaryBytes(4097) { buffer throws(Errno) in
      let start = buffer.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: CChar.self)
      let count = try checked { readlinkat(rawValue, "", start, buffer.count) }
      return [UInt8](buffer.prefix(count))
    }
  }
}

extension Descriptor {
  /// Calls the body with a path to an entry of this directory for inotify_add_watch(2), which takes no descriptor.
  /// - Parameter name: nil for the directory itself.
  public func withWatchPath<Result>(
    of name: [UInt8]? = nil, _ body: (CName) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    // The directory itself is not `N/.`, which would require search permission.
    try withCName(procPath + (name.map { [UInt8(ascii: "/")] + $0 } ?? []), body)
  }
}
