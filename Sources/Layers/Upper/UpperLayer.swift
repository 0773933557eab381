import CLibrary
import Posix
import Synchronization

/// The user and group that make a change, to whom new entries belong, and the permission bits that these do not get.
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
/// part of this layer on top. The names of whiteout markers (`.wh.NAME`) cannot be made.
///
/// What a function does on this layer is one call on its gate, so that it is never put off halfway; only content is
/// copied in several.
public final class UpperLayer: Sendable {
  /// The directory that the layer is.
  public let layer: DirectoryLayer
  let work: WorkFolder
  /// The name of the folder in the layer's root in which entries are made before they appear.
  public static let workFolderName = Array(WorkFolder.name.description.utf8)
  let whiteouts: WhiteoutWriter
  /// The user and group of this process.
  let (user, group) = (geteuid(), getegid())
  private let actsAsOthers = FileSystemUser.canBeChanged
  /// Whether the file system has files without a name (`O_TMPFILE`), as far as is known.
  let hasUnnamedFiles = Atomic(true)
  /// Whether the file system has `RENAME_WHITEOUT`, as far as is known.
  let renamesLeavingWhiteouts = Atomic(true)

  /// What writes to the layer.
  public enum Writer: Sendable {
    /// A command, beside a mount.
    case command
    /// A mount: the only one.
    case mount
    /// A process that continues with the mount of another one, whose lock it shares.
    case successor
  }
  private let writer: Writer
  /// Keeps other mounts from writing to the layer while any process has it open; nil if this process has not locked the
  /// layer, or cannot.
  public let lock: SharedDescriptor?

  /// Sweeps what a former process has left in the work folder, and sets the process's umask to 0, since the callers
  /// have their own.
  /// - Parameters:
  ///   - trustsOthers: whether a work folder is used although it has a fault.
  ///   - format: of its whiteouts.
  ///   - isTaken: whether another mount writes to the layer for certain; if not, one that has it locked may be about to end.
  /// - Throws: EBUSY if another mount writes to it; EXDEV if its work directory is on another mount; EPERM, ENOTDIR if
  ///   `workFolderFault` names a fault; EOPNOTSUPP if it cannot have whiteouts of the format; EROFS, EACCES, and other errors
  ///   of a file system that cannot be written to.
  public init(
    _ layer: DirectoryLayer, for writer: Writer = .command, trustsOthers: Bool = false,
    whiteouts format: WhiteoutFormat = .auto,
    isTaken: () -> Bool = { false }
  ) throws(Errno) {
    self.layer = layer
    self.writer = writer
    work = WorkFolder(layer, trustsOthers: trustsOthers)
    try work.checkPlace()
    try layer.root.withDescriptor { root throws(Errno) in try root.checkWriteAccess() }
    lock = if writer == .mount, let lock = try work.lock(isTaken) { SharedDescriptor(lock) } else { nil }
    whiteouts = try Self.prepare(work, layer, writer, format)
    umask(0)
    // As overlayfs does. Threads that serve requests are started later.
    if writer != .command { FileSystemUser.keepToLimits() }
    if writer != .command { _ = try? layer.root.withDescriptor { _ in whiteouts.prepare() } }
  }

  /// Does not leave the work folder behind if it fails.
  private static func prepare(
    _ work: WorkFolder, _ layer: DirectoryLayer, _ writer: Writer, _ format: WhiteoutFormat
  ) throws(Errno) -> WhiteoutWriter {
    do throws(Errno) {
      do throws(Errno) { try work.sweep() } catch {
        // What is in the layer can still be read and written to.
        if writer != .successor { throw error }
      }
      let whiteouts = try WhiteoutWriter(layer, work, format)
      if writer == .mount { try layer.gate.call { () throws(Errno) in try whiteouts.check() } }
      return whiteouts
    } catch {
      work.remove(isOwn: writer == .mount)
      throw error
    }
  }

  /// Removes the work folder. Not to be called by a process that hands over, since its successor needs the lock.
  public func close() { work.remove(isOwn: writer != .command) }

  /// The permission bits that an entry may have which is made for an owner. Those of a set-user-ID program of another user
  /// must not become those of one of this process's user.
  func permitted(_ mode: UInt32, for owner: EntryOwner) -> UInt32 {
    let isOwned = actsAsOthers || (owner.user == user && owner.group == group)
    return isOwned ? mode : mode & ~UInt32(S_ISUID | S_ISGID)
  }

  /// Runs the body as the owner of what it creates, if this process is privileged to.
  public func asOwner<Result: ~Copyable>(
    _ owner: EntryOwner, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard isOther(owner) else { return try body() }
    return try FileSystemUser.act(as: owner.user, group: owner.group, body)
  }

  /// Runs the body, which writes to files, as another user if this process is privileged to: what is reserved for root in
  /// the file system is not for others.
  ///
  /// To change the user takes as long as a short write, so a thread that serves requests keeps it. `Fuse` changes it back
  /// before any request but a WRITE.
  public func asWriter<Result>(
    _ writer: EntryOwner, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard isOther(writer) else {
      FileSystemUser.actAsSelf()
      return try body()
    }
    guard LayerAccess.current == .shared else { return try asOwner(writer, body) }
    try FileSystemUser.remain(writer.user, group: writer.group)
    return try body()
  }

  /// Runs the body, which registers a file with the kernel for writing by any program: with no privilege by which writing
  /// keeps set-user-ID bits or takes space that is reserved. File systems of other machines and processes know the file's
  /// owner only.
  /// - Throws: EPERM if this process may not do that; what the body throws.
  public func asAnyWriter<Result: ~Copyable>(
    of file: LayerFile, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    var (user, group) = (FileSystemUser.unknown, FileSystemUser.unknown)
    if layer.gate.isRemote {
      let status = try file.attributes()
      (user, group) = (status.owner, status.group)
    }
    return try FileSystemUser.actRestricted(as: user, group: group, body)
  }

  private func isOther(_ owner: EntryOwner) -> Bool {
    actsAsOthers && (owner.user != user || owner.group != group)
  }
}
