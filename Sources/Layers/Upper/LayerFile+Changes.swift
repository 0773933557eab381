import Posix

/// Changes to a file. Each works with a descriptor that was opened in any way, `O_PATH` included, unless stated otherwise.
extension LayerFile {
  /// Sets attributes.
  /// - Throws: errors of truncate(2), chown(2), chmod(2) and utimensat(2).
  public func change(_ changes: AttributeChanges) throws(Errno) { throw .noFunction }

  /// Another descriptor of the file.
  /// - Throws: ETXTBSY, EACCES, and other errors of open(2).
  public func reopened(_ flags: OpenFlags) throws(Errno) -> LayerFile { throw .noFunction }

  /// Calls pwrite(2) until all is written. Needs a descriptor that is open for writing.
  /// - Parameter appends: whether to write at the end instead, as `RWF_APPEND`.
  /// - Throws: ENOSPC, EDQUOT, EFBIG, EIO if nothing was written.
  /// - Returns: how many bytes were written.
  public func write(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, appends: Bool
  ) throws(Errno) -> Int { throw .noFunction }

  /// Calls fallocate(2). Needs a descriptor that is open for writing.
  public func allocate(mode: CInt, at offset: Int64, count: Int64) throws(Errno) { throw .noFunction }

  /// Calls fsync(2), or fdatasync(2). Needs a descriptor that is open for reading or writing.
  public func synchronize(dataOnly: Bool) throws(Errno) { throw .noFunction }

  /// Calls setxattr(2).
  public func setExtendedAttribute(
    _ name: CName, _ value: UnsafeRawBufferPointer, flags: CInt
  ) throws(Errno) { throw .noFunction }

  /// Calls removexattr(2).
  public func removeExtendedAttribute(_ name: CName) throws(Errno) { throw .noFunction }
}

/// Changes to a directory.
extension LayerDirectory {
  /// As `LayerFile.change`.
  public func change(_ changes: AttributeChanges) throws(Errno) { throw .noFunction }

  /// Calls fsync(2).
  public func synchronize() throws(Errno) { throw .noFunction }

  /// As `LayerFile.setExtendedAttribute`.
  public func setExtendedAttribute(
    _ name: CName, _ value: UnsafeRawBufferPointer, flags: CInt
  ) throws(Errno) { throw .noFunction }

  /// As `LayerFile.removeExtendedAttribute`.
  public func removeExtendedAttribute(_ name: CName) throws(Errno) { throw .noFunction }
}
