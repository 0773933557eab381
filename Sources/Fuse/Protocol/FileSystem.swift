import Glibc
import Posix

/// The operations of a file system that `Session` serves. Workers call the methods concurrently. Names and buffers are
/// valid during the call only. Each reply must be sent, during the call or later.
public protocol FileSystem: AnyObject, Sendable {
  /// The settings negotiated with the kernel at INIT.
  var settings: ConnectionSettings { get }
  /// LOOKUP. A positive reply increments the node's lookup count.
  func lookup(_ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>)
  /// FORGET: subtracts from the lookup count. Has no reply.
  func forget(_ node: NodeID, lookups: UInt64)
  /// GETATTR.
  func getAttributes(of node: NodeID, reply: consuming Reply<ReplyKind.Attributes>)
  /// SETATTR, also for open(2) with `O_TRUNC`.
  func setAttributes(
    of node: NodeID, _ changes: AttributeChanges, reply: consuming Reply<ReplyKind.Attributes>)
  /// READLINK.
  func readLink(_ node: NodeID, reply: consuming Reply<ReplyKind.Bytes>)
  /// OPEN. After ENOSYS the kernel sends no further OPEN and RELEASE.
  /// - Parameter flags: the flags of open(2).
  func openFile(_ node: NodeID, flags: CInt, reply: consuming Reply<ReplyKind.OpenFile>)
  /// RELEASE: the last descriptor of an open file was closed.
  /// - Parameter flags: as for `openFile`.
  func release(_ node: NodeID, flags: CInt, reply: consuming Reply<ReplyKind.Status>)
  /// READ. A reply of fewer than `size` bytes is the end of the file.
  func read(_ node: NodeID, at offset: Int64, size: Int, reply: consuming Reply<ReplyKind.Bytes>)
  /// WRITE.
  /// - Parameter appends: whether the file is open with O_APPEND.
  func write(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64, appends: Bool,
    reply: consuming Reply<ReplyKind.Write>)
  /// WRITE of pages that a program changed in a shared mapping; the caller is the kernel.
  func writeBack(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64,
    reply: consuming Reply<ReplyKind.Write>)
  /// FALLOCATE.
  /// - Parameter mode: as fallocate(2) has it.
  func allocate(
    _ node: NodeID, mode: CInt, at offset: Int64, count: Int64, reply: consuming Reply<ReplyKind.Status>)
  /// FSYNC. After ENOSYS the kernel sends no further FSYNC.
  /// - Parameter dataOnly: as for fdatasync(2).
  func synchronize(_ node: NodeID, dataOnly: Bool, reply: consuming Reply<ReplyKind.Status>)
  /// FSYNCDIR. After ENOSYS the kernel sends no further FSYNCDIR.
  func synchronizeDirectory(_ node: NodeID, dataOnly: Bool, reply: consuming Reply<ReplyKind.Status>)
  /// OPENDIR. After ENOSYS the kernel sends no further OPENDIR, and caches listings until mtime changes.
  func openDirectory(_ node: NodeID, reply: consuming Reply<ReplyKind.OpenDirectory>)
  /// READDIR, or READDIRPLUS `withEntries`, from a cookie on; 0 is the beginning.
  func readDirectory(
    _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool,
    reply: consuming Reply<ReplyKind.Bytes>)
  /// GETXATTR. `size` 0 requests the size of the value.
  func getExtendedAttribute(
    _ name: CName, of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>)
  /// LISTXATTR. `size` 0 requests the size of the list.
  func listExtendedAttributes(
    of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>)
  /// SETXATTR.
  /// - Parameter flags: as setxattr(2) has them.
  func setExtendedAttribute(
    _ name: CName, of node: NodeID, _ value: UnsafeRawBufferPointer, flags: CInt,
    reply: consuming Reply<ReplyKind.Status>)
  /// REMOVEXATTR.
  func removeExtendedAttribute(_ name: CName, of node: NodeID, reply: consuming Reply<ReplyKind.Status>)
  /// STATFS.
  func statfs(reply: consuming Reply<ReplyKind.Statfs>)
  /// LSEEK with `SEEK_DATA` or `SEEK_HOLE`.
  func seek(_ node: NodeID, to offset: Int64, whence: CInt, reply: consuming Reply<ReplyKind.Offset>)
  /// IOCTL with an output buffer of `size` bytes.
  func ioctl(
    _ command: UInt32, of node: NodeID, input: UnsafeRawBufferPointer, size: Int,
    reply: consuming Reply<ReplyKind.Ioctl>)
  /// POLL.
  /// - Parameter handle: to be woken at further events; nil if the process does not wait.
  func poll(
    _ node: NodeID, for events: CInt, handle: PollHandle?, reply: consuming Reply<ReplyKind.PollEvents>)
  /// MKNOD, MKDIR or SYMLINK; MKNOD also for open(2) with `O_CREAT`, where the kernel knows of no such name. ESTALE makes
  /// the kernel look the name up again. The reply increments the node's lookup count.
  func make(_ entry: NewEntry, _ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>)
  /// LINK. The reply increments the node's lookup count.
  func makeLink(
    to node: NodeID, _ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>)
  /// UNLINK or RMDIR.
  func remove(_ name: CName, isDirectory: Bool, from parent: NodeID, reply: consuming Reply<ReplyKind.Status>)
  /// RENAME.
  /// - Parameter flags: as renameat2(2) has them.
  func rename(
    _ name: CName, in parent: NodeID, to newName: CName, in newParent: NodeID, flags: UInt32,
    reply: consuming Reply<ReplyKind.Status>)
  /// The processor that answers requests while a thread of the file system works ahead on the other one; nil while it
  /// does not.
  var answeringProcessor: Int32? { get }
  /// Called when no request has arrived for some 20 ms.
  func didBecomeIdle()
  /// How requests are answered that a layer keeps waiting.
  func policy(forLayer layer: Int) -> LayerPolicy
  /// Called when a layer has not answered a call for a second.
  func layerIsSlow(_ layer: Int)
}

extension FileSystem {
  /// nil.
  public var answeringProcessor: Int32? { nil }
  /// Does nothing.
  public func didBecomeIdle() {}
  /// No limit.
  public func policy(forLayer layer: Int) -> LayerPolicy { LayerPolicy() }
  /// Does nothing.
  public func layerIsSlow(_ layer: Int) {}
}
