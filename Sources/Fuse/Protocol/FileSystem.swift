import Glibc
import Posix

/// A request that would change the file system and that has no method of its own.
public enum ModificationKind: Sendable {
  case makeLink, create
  case setExtendedAttribute, removeExtendedAttribute
  case allocate
}

/// An entry that is to be made: MKNOD, MKDIR or SYMLINK.
public enum NewEntryKind: Sendable {
  case node, directory, symbolicLink
}

/// The operations of a file system that is mounted with `Session`. Methods come from several threads at
/// once; names and buffers that they are handed are valid for the call only; every reply must be paid, now
/// or later.
public protocol FileSystem: AnyObject, Sendable {
  /// What the mount's beginning is to agree upon with the kernel.
  var settings: ConnectionSettings { get }
  /// LOOKUP: finds an entry; when it is answered, its node's lookup count grows by one.
  func lookup(_ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>)
  /// FORGET: takes back lookups. There is no reply.
  func forget(_ node: NodeID, lookups: UInt64)
  /// GETATTR.
  func getAttributes(of node: NodeID, reply: consuming Reply<ReplyKind.Attributes>)
  /// SETATTR, also for `open` with O_TRUNC.
  /// - Parameter changesPermissions: whether owner, group or mode are to change, and not only size and times.
  func setAttributes(
    of node: NodeID, changesPermissions: Bool, reply: consuming Reply<ReplyKind.Attributes>)
  /// READLINK.
  func readLink(_ node: NodeID, reply: consuming Reply<ReplyKind.Bytes>)
  /// OPEN of what is no directory; failing with ENOSYS makes the kernel stop asking, and no file is closed
  /// either.
  /// - Parameter flags: those of open(2).
  func openFile(_ node: NodeID, flags: CInt, reply: consuming Reply<ReplyKind.OpenFile>)
  /// RELEASE: what an OPEN opened is closed by all who shared it.
  func release(_ node: NodeID)
  /// READ, at most `size` bytes; fewer are the end of the file.
  func read(_ node: NodeID, at offset: Int64, size: Int, reply: consuming Reply<ReplyKind.Bytes>)
  /// WRITE.
  func write(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64,
    reply: consuming Reply<ReplyKind.Write>)
  /// OPENDIR; failing with ENOSYS makes the kernel stop asking, and keep listings while mtime stays.
  func openDirectory(_ node: NodeID, reply: consuming Reply<ReplyKind.OpenDirectory>)
  /// READDIR, or READDIRPLUS `withEntries`: the entries after a cookie, 0 for the beginning.
  func readDirectory(
    _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool,
    reply: consuming Reply<ReplyKind.Bytes>)
  /// GETXATTR; `size` 0 asks for the value's size.
  func getExtendedAttribute(
    _ name: CName, of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>)
  /// LISTXATTR; `size` 0 asks for the list's size.
  func listExtendedAttributes(
    of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>)
  /// STATFS.
  func statfs(reply: consuming Reply<ReplyKind.Statfs>)
  /// LSEEK with SEEK_DATA or SEEK_HOLE.
  func seek(_ node: NodeID, to offset: Int64, whence: CInt, reply: consuming Reply<ReplyKind.Offset>)
  /// IOCTL that reads at most `size` bytes.
  func ioctl(_ command: UInt32, of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.Ioctl>)
  /// POLL: which events of poll(2) are there for an open file.
  /// - Parameter handle: to be woken when there are more; nil if nobody waits.
  func poll(_ node: NodeID, handle: PollHandle?, reply: consuming Reply<ReplyKind.PollEvents>)
  /// MKNOD, MKDIR or SYMLINK; when it is answered, the node's lookup count grows by one.
  func make(_ entry: NewEntryKind, _ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>)
  /// UNLINK, or RMDIR of a directory.
  func remove(_ name: CName, isDirectory: Bool, from parent: NodeID, reply: consuming Reply<ReplyKind.Status>)
  /// RENAME.
  func rename(
    _ name: CName, in parent: NodeID, to newName: CName, in newParent: NodeID,
    reply: consuming Reply<ReplyKind.Status>)
  /// Any other request that would change something.
  func modify(_ kind: ModificationKind, reply: consuming Reply<ReplyKind.Status>)
  /// Does something that is likely to be asked for next, some ten microseconds' worth.
  /// - Parameter begin: asked before, if there is something to do; false tells to leave it, as a request is there.
  /// - Returns: whether it did something.
  func runIdleWork(_ begin: () -> Bool) -> Bool
  /// No request has come for some time.
  func didBecomeIdle()
}

extension FileSystem {
  /// There is nothing to do.
  public func runIdleWork(_ begin: () -> Bool) -> Bool { false }
  /// Nothing is kept for requests to come.
  public func didBecomeIdle() {}
}
