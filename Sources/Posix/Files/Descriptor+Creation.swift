import CLinux
import CLibrary

/// New entries of this directory, and new names.
extension Descriptor {
  /// Creates a regular file, open for reading and writing.
  /// - Parameter mode: its permission bits, without a umask; by default only its owner may access it.
  /// - Throws: EEXIST and other errors of open(2).
  public func createFile(_ name: CName, mode: UInt32 = 0o600) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_create(rawValue, name, mode) })
  }

  /// Creates a regular file without a name (`O_TMPFILE`), open for reading and writing, that only its owner may access.
  /// - Parameter isLinkable: whether `link` can give it a name.
  /// - Throws: EOPNOTSUPP, EISDIR, EINVAL or ENOENT if the file system or the kernel has no such files.
  public func createUnnamedFile(isLinkable: Bool) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_create_unnamed(rawValue, isLinkable) })
  }

  /// Calls mknodat(2).
  /// - Parameters:
  ///   - mode: type and permission bits.
  ///   - device: the number of a device.
  public func makeNode(_ name: CName, mode: UInt32, device: UInt64) throws(Errno) {
    _ = try checked { mknodat(rawValue, name, mode, UInt(device)) }
  }

  /// Calls mkdirat(2).
  public func makeDirectory(_ name: CName, mode: UInt32) throws(Errno) {
    _ = try checked { mkdirat(rawValue, name, mode) }
  }

  /// Calls symlinkat(2).
  public func makeSymbolicLink(_ name: CName, target: CName) throws(Errno) {
    _ = try checked { symlinkat(target, rawValue, name) }
  }

  /// Gives a file a further name in this directory by linkat(2).
  /// - Parameter file: open in any way.
  /// - Throws: EEXIST; ENOENT for a removed file.
  public func link(_ file: borrowing Descriptor, as name: CName) throws(Errno) {
    let number = file.rawValue
    _ = try checked { linux_link(number, rawValue, name) }
  }

  /// The flags of renameat2(2).
  public struct RenameMode: OptionSet, Sendable {
    /// As renameat2(2) has them.
    public let rawValue: UInt32
    /// The flags with these bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// `RENAME_NOREPLACE`.
    public static let noReplace = RenameMode(rawValue: 1)
    /// `RENAME_EXCHANGE`.
    public static let exchange = RenameMode(rawValue: 2)
    /// `RENAME_WHITEOUT`.
    public static let whiteout = RenameMode(rawValue: 4)
  }

  /// Calls renameat2(2).
  /// - Throws: EINVAL if the file system does not support the flags.
  public func rename(
    _ name: CName, to newName: CName, in directory: borrowing Descriptor, _ flags: RenameMode
  ) throws(Errno) {
    let number = directory.rawValue
    _ = try checked { linux_rename(rawValue, name, number, newName, flags.rawValue) }
  }

  /// Whether this process may change the entries of this directory, by faccessat(2).
  /// - Throws: EACCES, EROFS.
  public func checkWriteAccess() throws(Errno) {
    _ = try checked { faccessat(rawValue, ".", W_OK | X_OK, AT_EACCESS) }
  }
}
