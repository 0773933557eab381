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

/// Counts the request and returns its file system. The thread acts as itself, but in a WRITE, which decides itself.
@inline(__always)
func fileSystem(_ request: fuse_req_t, _ kind: RequestKind) -> any FileSystem {
  let context = fuse_req_userdata(request).unsafelyUnwrapped
  if kind != .write { FileSystemUser.actAsSelf() }
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
  addContentChanges(&table)
  addAttributeChanges(&table)
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
  table.release = { request, node, info in
    guard let request else { return }
    fileSystem(request, .release).release(
      NodeID(rawValue: node), flags: info?.pointee.flags ?? 0, reply: Reply(request))
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
  // The kernel falls back to READ and WRITE.
  table.copy_file_range = { request, _, _, _, _, _, _, _, _ in decline(request, .change) }
}
