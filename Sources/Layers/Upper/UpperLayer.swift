import Glibc
import Posix

/// The user and group that new entries belong to, and the permission bits that they do not get.
public struct EntryOwner: Sendable {
  /// The user ID.
  public let user: UInt32
  /// The group ID; a directory with the set-group-ID bit gives its own group instead.
  public let group: UInt32
  /// The umask of the caller, which a directory's default ACL replaces.
  public let umask: UInt32

  /// Creates an owner.
  public init(user: UInt32, group: UInt32, umask: UInt32) {
    (self.user, self.group, self.umask) = (user, group, umask)
  }
}

/// The flags of renameat2(2).
public struct RenameFlags: OptionSet, Sendable {
  /// As renameat2(2) has them.
  public let rawValue: UInt32
  /// The flags with these bits.
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  /// `RENAME_NOREPLACE`.
  public static let noReplace = RenameFlags(rawValue: 1)
  /// `RENAME_EXCHANGE`.
  public static let exchange = RenameFlags(rawValue: 2)
}

/// The layer that takes the changes, in the format of overlayfs (Documentation/filesystems/overlayfs.rst).
///
/// Whatever is copied up or replaced appears whole or not at all. Every merged directory that is passed must have a
/// part of this layer on top.
public final class UpperLayer: Sendable {
  /// The directory that the layer is.
  public let layer: DirectoryLayer

  /// Sweeps what a former process has left in the work folder.
  /// - Throws: EROFS, EACCES, and other errors of a file system that cannot be written to.
  public init(_ layer: DirectoryLayer) throws(Errno) {
    self.layer = layer
    throw .noFunction
  }

  // MARK: - Copying up

  /// Makes a directory with the attributes of one in a layer below, so that it is merged with that one. Succeeds if the
  /// parent has a directory of the name already.
  public func copyUpDirectory(
    _ name: CName, from source: LayerDirectory, to parent: LayerDirectory
  ) throws(Errno) { throw .noFunction }

  /// Copies a non-directory of a layer below.
  /// - Parameters:
  ///   - identity: that it must have.
  ///   - size: the most bytes of its content to copy, since it is about to be truncated; nil for all.
  /// - Returns: the attributes of the copy.
  /// - Throws: EEXIST if the parent has an entry of the name; ESTALE and ENOENT as `LayerDirectory.openFile`.
  public func copyUp(
    _ name: CName, from source: LayerDirectory, identity: FileIdentity, to parent: LayerDirectory, size: UInt64?
  ) throws(Errno) -> FileStatus { throw .noFunction }

  /// Copies an open regular file that has lost its name to a file without a name.
  /// - Parameter size: as for `copyUp`.
  /// - Returns: the copy, open for reading and writing.
  public func copyUpUnnamed(_ file: LayerFile, size: UInt64?) throws(Errno) -> LayerFile { throw .noFunction }

  // MARK: - New entries

  /// Makes an entry that has no content: a regular file, FIFO, socket or device.
  /// - Parameters:
  ///   - mode: type and permission bits.
  ///   - device: for a device.
  /// - Throws: EEXIST if the name is visible; errors of mknod(2).
  public func makeNode(
    _ name: CName, in directory: MergedDirectory, mode: UInt32, device: UInt64, _ owner: EntryOwner
  ) throws(Errno) { throw .noFunction }

  /// Makes a directory, which is opaque where a layer below has a directory of the name that is hidden.
  /// - Throws: EEXIST if the name is visible; errors of mkdir(2).
  public func makeDirectory(
    _ name: CName, in directory: MergedDirectory, mode: UInt32, _ owner: EntryOwner
  ) throws(Errno) { throw .noFunction }

  /// Makes a symbolic link.
  /// - Throws: EEXIST if the name is visible; errors of symlink(2).
  public func makeSymbolicLink(
    _ name: CName, in directory: MergedDirectory, target: CName, _ owner: EntryOwner
  ) throws(Errno) { throw .noFunction }

  /// Adds a name to a file of this layer.
  /// - Parameter file: open in any way.
  /// - Throws: EEXIST if the name is visible; EMLINK, ENOENT for a file without a name, and other errors of link(2).
  public func makeLink(
    _ name: CName, in directory: MergedDirectory, to file: LayerFile
  ) throws(Errno) { throw .noFunction }

  // MARK: - Removal

  /// Removes a non-directory from view: from this layer, and by a whiteout if a layer below has the name.
  /// - Throws: ENOENT if the name is not visible; EISDIR for a directory.
  public func remove(_ name: CName, from directory: MergedDirectory) throws(Errno) { throw .noFunction }

  /// Removes an empty directory from view, as `remove`.
  /// - Throws: ENOENT, ENOTDIR, ENOTEMPTY.
  public func removeDirectory(_ name: CName, from directory: MergedDirectory) throws(Errno) {
    throw .noFunction
  }

  /// Renames an entry that is in this layer; where a layer below has the old name, a whiteout takes its place.
  /// - Throws: EXDEV for a directory that layers below take part in; ENOENT, EEXIST, ENOTEMPTY, EISDIR, ENOTDIR, EINVAL
  ///   as rename(2).
  public func rename(
    _ name: CName, in directory: MergedDirectory, to newName: CName, in newDirectory: MergedDirectory,
    _ flags: RenameFlags
  ) throws(Errno) { throw .noFunction }
}
