import Posix

/// An entry of a layer whose attributes can be changed.
public protocol ChangeableEntry {
  /// Calls the body with a descriptor of the entry, opened in any way.
  func withDescriptor<Result>(
    _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result
}
extension LayerFile: ChangeableEntry {}
extension LayerDirectory: ChangeableEntry {}

extension ChangeableEntry {
  /// Sets attributes.
  /// - Throws: errors of truncate(2), chown(2), chmod(2) and utimensat(2).
  public func change(_ changes: AttributeChanges) throws(Errno) {
    try withDescriptor { descriptor throws(Errno) in try descriptor.change(changes) }
  }

  /// Calls setxattr(2).
  public func setExtendedAttribute(
    _ name: CName, _ value: UnsafeRawBufferPointer, flags: CInt
  ) throws(Errno) {
    try withDescriptor { descriptor throws(Errno) in
      try descriptor.setExtendedAttribute(name, value, flags: flags)
    }
  }

  /// Calls removexattr(2).
  public func removeExtendedAttribute(_ name: CName) throws(Errno) {
    try withDescriptor { descriptor throws(Errno) in try descriptor.removeExtendedAttribute(name) }
  }
}

/// Changes to a file. Each works with a descriptor that was opened in any way, `O_PATH` included, unless stated otherwise.
extension LayerFile {
  /// Another descriptor of the file.
  /// - Throws: ETXTBSY, EACCES, and other errors of open(2).
  public func reopened(_ flags: OpenFlags) throws(Errno) -> LayerFile {
    try withDescriptor { descriptor throws(Errno) in
      let again = try descriptor.reopened(flags)
      // The size does not stay as it is where there are writers.
      let attributes = flags.contains(.write) ? nil : try again.attributes()
      return LayerFile(again, attributes, gate)
    }
  }

  /// Calls pwrite(2) until all is written. Needs a descriptor that is open for writing.
  /// - Parameter appends: whether to write at the end instead, as `RWF_APPEND`.
  /// - Throws: ENOSPC, EDQUOT, EFBIG, EIO if nothing was written.
  /// - Returns: how many bytes were written.
  public func write(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, appends: Bool
  ) throws(Errno) -> Int {
    try withDescriptor { descriptor throws(Errno) in
      try descriptor.writeAll(bytes, at: offset, appends: appends)
    }
  }

  /// Calls fallocate(2). Needs a descriptor that is open for writing.
  public func allocate(mode: CInt, at offset: Int64, count: Int64) throws(Errno) {
    try withDescriptor { descriptor throws(Errno) in
      try descriptor.allocate(mode: mode, at: offset, count: count)
    }
  }

  /// Calls fsync(2), or fdatasync(2). Needs a descriptor that is open for reading or writing.
  public func synchronize(dataOnly: Bool) throws(Errno) {
    try withDescriptor { descriptor throws(Errno) in try descriptor.synchronize(dataOnly: dataOnly) }
  }
}

/// Changes to a directory.
extension LayerDirectory {
  /// Calls fsync(2), or fdatasync(2).
  public func synchronize(dataOnly: Bool) throws(Errno) {
    try withDescriptor { descriptor throws(Errno) in
      try descriptor.open(".", [.read, .directory]).synchronize(dataOnly: dataOnly)
    }
  }

  /// Calls the body with the directory's descriptor.
  /// - Throws: EROFS in an archive; what the body throws.
  public func withDescriptor<Result: ~Copyable>(
    _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard case .descriptor(let handle) = backing else { throw .readOnlyFileSystem }
    return try gate.call { () throws(Errno) in try body(handle.descriptor) }
  }
}
