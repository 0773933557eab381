import CLinux
import Glibc

/// Calls that cannot lead out of the mount that a directory is in, whatever its paths lead to by now.
extension Descriptor {
  /// Opens what is below this directory: `..`, symbolic links and other mounts on the way are errors.
  /// - Throws: ELOOP at a link, EXDEV where it would leave the directory or the mount; ENOSYS before Linux 5.6.
  public func openBeneath(_ path: CName, _ flags: OpenFlags) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_open_beneath(rawValue, path, flags.rawValue) })
  }

  /// Opens the open file once more, also one that is open as a place only.
  public func reopened(_ flags: OpenFlags) throws(Errno) -> Descriptor {
    try withCName(procPath) { path throws(Errno) in try Descriptor.open(path, flags) }
  }

  /// The attributes that the kernel has of the open file, without asking its file system.
  public func cachedAttributes() throws(Errno) -> FileStatus {
    var raw = linux_attributes()
    _ = try checked { linux_known_attributes(rawValue, &raw) }
    return FileStatus(raw)
  }

  /// Sets the open file's times to those that the kernel knows it to have.
  /// - Parameter both: the time of the last access, too.
  /// - Throws: EPERM unless the file is the caller's; EROFS; EINVAL before Linux 5.8.
  public func rewriteTimes(includingAccess both: Bool) throws(Errno) {
    _ = try checked { linux_keep_times(rawValue, both) }
  }

  /// Makes an entry without content, which only its owner may use.
  /// - Throws: EEXIST where there is one; EACCES, EROFS and what else mknod(2) answers.
  public func make(_ name: CName, _ kind: FileKind) throws(Errno) {
    _ = try checked {
      switch kind {
      case .directory: mkdirat(rawValue, name, 0o700)
      case .symbolicLink: symlinkat(".", rawValue, name)
      default: mknodat(rawValue, name, kind.rawValue | 0o600, 0)
      }
    }
  }

  /// Removes an entry.
  /// - Throws: ENOENT where there is none; EBUSY at a mount point; EACCES, EROFS and what else unlink(2) answers.
  public func remove(_ name: CName, isDirectory: Bool) throws(Errno) {
    _ = try checked { unlinkat(rawValue, name, isDirectory ? AT_REMOVEDIR : 0) }
  }

  /// Renames an entry.
  /// - Throws: as `remove`.
  public func rename(
    _ name: CName, to newName: CName, in directory: borrowing Descriptor
  ) throws(Errno) {
    _ = try checked { renameat(rawValue, name, directory.rawValue, newName) }
  }
}
