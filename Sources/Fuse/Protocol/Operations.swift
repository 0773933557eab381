import CFuse
import Glibc
import Posix

/// The context (`userdata`) of libfuse's callbacks, which are C functions and cannot capture.
final class Dispatcher: Sendable {
  let fileSystem: any FileSystem
  let counters = RequestCounters()
  /// The requests that other threads will reply to.
  let pendingReplies = PendingReplies()
  /// nil if the file system does not use passthrough.
  let passthrough: PassthroughNegotiation?

  init(_ fileSystem: any FileSystem) {
    self.fileSystem = fileSystem
    let depth = fileSystem.settings.passthroughDepth
    passthrough = depth > 0 ? PassthroughNegotiation(depth: depth) : nil
  }
}

/// Counts the request and returns its file system.
@inline(__always)
private func fileSystem(_ request: fuse_req_t, _ kind: RequestKind) -> any FileSystem {
  let context = fuse_req_userdata(request).unsafelyUnwrapped
  return Unmanaged<Dispatcher>.fromOpaque(context)._withUnsafeGuaranteedRef { dispatcher in
    if !RequestThread.isRepeating { dispatcher.counters.increment(kind) }
    return dispatcher.fileSystem
  }
}

/// The pending replies of the session that a request belongs to.
func pendingReplies(of request: fuse_req_t) -> PendingReplies {
  let context = fuse_req_userdata(request).unsafelyUnwrapped
  return Unmanaged<Dispatcher>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.pendingReplies }
}

/// Counts the request and replies ENOSYS.
private func decline(_ request: fuse_req_t?, _ kind: RequestKind) {
  guard let request else { return }
  _ = fileSystem(request, kind)
  fuse_reply_err(request, ENOSYS)
}

/// The callbacks for libfuse. Each request needs exactly one reply.
func operationTable() -> fuse_lowlevel_ops {
  var table = fuse_lowlevel_ops()
  table.`init` = { context, connection in
    guard let context, let connection else { return }
    let settings = Unmanaged<Dispatcher>.fromOpaque(context)._withUnsafeGuaranteedRef {
      $0.fileSystem.settings
    }
    negotiate(settings, &connection.pointee)
  }
  addReads(&table)
  addDirectories(&table)
  addExtendedAttributes(&table)
  addDeclined(&table)
  addChanges(&table)
  addEntryChanges(&table)
  return table
}

private func addReads(_ table: inout fuse_lowlevel_ops) {
  table.lookup = { request, parent, name in
    guard let request, let name else { return }
    fileSystem(request, .lookup).lookup(name, in: NodeID(rawValue: parent), reply: Reply(request))
  }
  table.forget = { request, node, lookups in
    guard let request else { return }
    fileSystem(request, .forget).forget(NodeID(rawValue: node), lookups: lookups)
    fuse_reply_none(request)
  }
  table.forget_multi = { request, count, forgets in
    guard let request else { return }
    let target = fileSystem(request, .forget)
    for forget in UnsafeBufferPointer(start: forgets, count: count) {
      target.forget(NodeID(rawValue: forget.ino), lookups: forget.nlookup)
    }
    fuse_reply_none(request)
  }
  table.getattr = { request, node, _ in
    guard let request else { return }
    fileSystem(request, .getattr).getAttributes(of: NodeID(rawValue: node), reply: Reply(request))
  }
  table.readlink = { request, node in
    guard let request else { return }
    fileSystem(request, .readlink).readLink(NodeID(rawValue: node), reply: Reply(request))
  }
  table.open = { request, node, info in
    guard let request, let info else { return }
    fileSystem(request, .open).openFile(
      NodeID(rawValue: node), flags: info.pointee.flags, reply: Reply(request))
  }
  table.release = { request, node, _ in
    guard let request else { return }
    fileSystem(request, .release).release(NodeID(rawValue: node))
    fuse_reply_err(request, 0)
  }
  table.read = { request, node, size, offset, _ in
    guard let request else { return }
    fileSystem(request, .read).read(
      NodeID(rawValue: node), at: Int64(offset), size: size, reply: Reply(request))
  }
  table.statfs = { request, _ in
    guard let request else { return }
    fileSystem(request, .statfs).statfs(reply: Reply(request))
  }
  table.ioctl = { request, node, command, _, _, _, input, inputSize, size in
    guard let request else { return }
    fileSystem(request, .ioctl).ioctl(
      command, of: NodeID(rawValue: node), input: UnsafeRawBufferPointer(start: input, count: inputSize),
      size: size, reply: Reply(request))
  }
  table.poll = { request, node, info, handle in
    guard let request else { return }
    let events = CInt(truncatingIfNeeded: info?.pointee.poll_events ?? 0)
    fileSystem(request, .poll).poll(
      NodeID(rawValue: node), for: events, handle: handle.map { PollHandle($0) }, reply: Reply(request))
  }
  table.lseek = { request, node, offset, whence, _ in
    guard let request else { return }
    fileSystem(request, .lseek).seek(
      NodeID(rawValue: node), to: Int64(offset), whence: whence, reply: Reply(request))
  }
}

private func addDirectories(_ table: inout fuse_lowlevel_ops) {
  table.opendir = { request, node, _ in
    guard let request else { return }
    fileSystem(request, .opendir).openDirectory(NodeID(rawValue: node), reply: Reply(request))
  }
  table.readdir = { request, node, size, offset, _ in
    guard let request else { return }
    fileSystem(request, .readdir).readDirectory(
      NodeID(rawValue: node), after: UInt64(bitPattern: Int64(offset)), size: size, withEntries: false,
      reply: Reply(request))
  }
  table.readdirplus = { request, node, size, offset, _ in
    guard let request else { return }
    fileSystem(request, .readdirplus).readDirectory(
      NodeID(rawValue: node), after: UInt64(bitPattern: Int64(offset)), size: size, withEntries: true,
      reply: Reply(request))
  }
}

private func addExtendedAttributes(_ table: inout fuse_lowlevel_ops) {
  table.getxattr = { request, node, name, size in
    guard let request, let name else { return }
    fileSystem(request, .getxattr).getExtendedAttribute(
      name, of: NodeID(rawValue: node), size: size, reply: Reply(request))
  }
  table.listxattr = { request, node, size in
    guard let request else { return }
    fileSystem(request, .listxattr).listExtendedAttributes(
      of: NodeID(rawValue: node), size: size, reply: Reply(request))
  }
}

/// Requests that the kernel no longer sends after ENOSYS. Without a callback libfuse would reply success to some, and the
/// kernel would continue to send them.
private func addDeclined(_ table: inout fuse_lowlevel_ops) {
  table.flush = { request, _, _ in decline(request, .flush) }
  table.fsync = { request, _, _, _ in decline(request, .fsync) }
  // The kernel falls back to READ and WRITE.
  table.copy_file_range = { request, _, _, _, _, _, _, _, _ in decline(request, .change) }
  table.fsyncdir = { request, _, _, _ in decline(request, .fsync) }
}

private func addChanges(_ table: inout fuse_lowlevel_ops) {
  table.setattr = { request, node, _, wanted, _ in
    guard let request else { return }
    let owners = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID
    fileSystem(request, .setattr).setAttributes(
      of: NodeID(rawValue: node), changesPermissions: wanted & owners != 0, reply: Reply(request))
  }
  table.write = { request, node, bytes, size, offset, info in
    guard let request else { return }
    // Page cache writeback of a mapping carries no caller; it would appear to be root's.
    if let info, info.pointee.writepage != 0 {
      fileSystem(request, .write).writeBack(to: NodeID(rawValue: node), reply: Reply(request))
      return
    }
    fileSystem(request, .write).write(
      UnsafeRawBufferPointer(start: bytes, count: size), to: NodeID(rawValue: node), at: Int64(offset),
      appends: (info?.pointee.flags ?? 0) & O_APPEND != 0, reply: Reply(request))
  }
  table.link = { request, _, _, _ in change(request, .makeLink) }
  table.create = { request, _, _, _, _ in change(request, .create) }
  table.setxattr = { request, _, _, _, _, _ in change(request, .setExtendedAttribute) }
  table.removexattr = { request, _, _ in change(request, .removeExtendedAttribute) }
  table.fallocate = { request, _, _, _, _, _ in change(request, .allocate) }
}

private func addEntryChanges(_ table: inout fuse_lowlevel_ops) {
  table.mknod = { request, parent, name, _, _ in make(request, .node, name, parent) }
  table.mkdir = { request, parent, name, _ in make(request, .directory, name, parent) }
  table.symlink = { request, _, parent, name in make(request, .symbolicLink, name, parent) }
  table.unlink = { request, parent, name in remove(request, name, isDirectory: false, parent) }
  table.rmdir = { request, parent, name in remove(request, name, isDirectory: true, parent) }
  table.rename = { request, parent, name, newParent, newName, flags in
    guard let request, let name, let newName else { return }
    let target = fileSystem(request, .change)
    // RENAME_EXCHANGE and RENAME_NOREPLACE are not supported.
    if flags != 0 {
      fuse_reply_err(request, EROFS)
      return
    }
    target.rename(
      name, in: NodeID(rawValue: parent), to: newName, in: NodeID(rawValue: newParent), reply: Reply(request))
  }
}

private func make(_ request: fuse_req_t?, _ entry: NewEntryKind, _ name: CName?, _ parent: fuse_ino_t) {
  guard let request, let name else { return }
  fileSystem(request, .change).make(entry, name, in: NodeID(rawValue: parent), reply: Reply(request))
}

private func remove(_ request: fuse_req_t?, _ name: CName?, isDirectory: Bool, _ parent: fuse_ino_t) {
  guard let request, let name else { return }
  fileSystem(request, .change).remove(
    name, isDirectory: isDirectory, from: NodeID(rawValue: parent), reply: Reply(request))
}

private func change(_ request: fuse_req_t?, _ kind: ModificationKind) {
  guard let request else { return }
  fileSystem(request, .change).modify(kind, reply: Reply(request))
}
