import Fuse
import Glibc
import Layers
import Posix

/// OPEN and RELEASE. The kernel sends them with `-o passthrough` only, and on a writable mount with `strings=merge`
/// (`TableWriter`).
///
/// On a writable mount the upper layer's files are passed through, for reading and writing, and no others: one of a layer
/// below would keep its backing file when it is copied up. So such a file is open through the page cache, also after it was
/// copied up, until its last close, and its readers see what is written.
extension FileOperations {
  /// For `bundlefs status`; nil without `-o passthrough`.
  var passthroughStatus: PassthroughStatus? { passthrough.withLock { $0 }.status }

  func setPassthrough(_ mode: PassthroughMode) {
    passthrough.withLock { $0 = mode }
    if case .possible(let passthrough) = mode, let writer {
      let writes = DirectWrites(passthrough, writer.own, writer.files.queue)
      directWrites.withLock { $0 = writes }
      store.directWriters.withLock { $0 = writes }
    }
  }

  /// Lets go of the kernel's side. A successor answers what is opened and closed from now on; where none comes, the
  /// connection ends.
  func endPassthrough() {
    passthrough.withLock { if case .possible = $0 { $0 = .ended } }
  }

  func open(_ node: NodeID, flags: CInt, _ reply: consuming Reply<ReplyKind.OpenFile>) {
    switch passthrough.withLock({ $0 }) {
    case .possible(let passthrough): open(node, flags: flags, passthrough, reply)
    case .ended: reply.leaveToSuccessor()
    case .off, .impossible:
      if let tables = writer?.tables { return tables.open(node, flags: flags, reply) }
      // ENOSYS: the kernel sends neither OPEN nor RELEASE from now on.
      reply.fail(.noFunction)
    }
  }

  private func open(
    _ node: NodeID, flags: CInt, _ passthrough: Passthrough, _ reply: consuming Reply<ReplyKind.OpenFile>
  ) {
    if node.isReserved {
      _ = reply.sendCached()
      return
    }
    let request = Passthrough.Request(node, flags)
    let opening: FileOpening
    do throws(Errno) {
      opening =
        writer == nil
        ? try openForReading(request, passthrough)
        : try open(request, flags, reply.caller, passthrough)
    } catch {
      return reply.fail(error)
    }
    if !reply.send(opening) { passthrough.undo(request) }
    passthrough.finish(request)
  }

  func release(_ node: NodeID, flags: CInt, _ reply: consuming Reply<ReplyKind.Status>) {
    let passthrough: Passthrough
    switch self.passthrough.withLock({ $0 }) {
    case .possible(let present): passthrough = present
    case .ended: return reply.leaveToSuccessor()
    case .off, .impossible:
      if let tables = writer?.tables { return tables.release(node, flags: flags, reply) }
      return reply.send()
    }
    let request = Passthrough.Request(node, flags)
    let writes = request.writes ? directWrites.withLock { $0 } : nil
    writes?.willClose(node, in: store)
    passthrough.close(request)
    writes?.checkMapping(of: node, in: store)
    reply.send()
    passthrough.finish(request)
  }

  /// FORGET: a node that the kernel does not know is not open, whatever was counted while workers died.
  func recordForget(of node: NodeID) {
    writer?.tables?.recordForget(of: node)
    guard case .possible(let passthrough) = passthrough.withLock({ $0 }), passthrough.knows(node) else {
      return
    }
    if !store.isKnown(node) { passthrough.forget(node) }
  }

  // MARK: - Read-only mounts

  private func openForReading(
    _ request: Passthrough.Request, _ passthrough: Passthrough
  ) throws(Errno) -> FileOpening {
    if request.writes { throw .readOnlyFileSystem }
    if let present = try passthrough.join(request, .cached) { return present }
    let file = try fileToPass(of: request.node, passthrough)
    return try passthrough.open(request, file.map { .passed($0) } ?? .cached)
  }

  /// The file to which a node is pinned from now on; nil if it is not to be passed through, in an archive, or if the kernel
  /// may keep another size of it.
  private func fileToPass(of node: NodeID, _ passthrough: Passthrough) throws(Errno) -> LayerFile? {
    let isWanted = try store.table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      guard table[slot].kind == .regular, let size = table[slot].reportedSize else { return false }
      return size >= passthrough.smallest && store.stack[Int(table[slot].layer)].archive == nil
    }
    return isWanted ? try openFile(of: node) : nil
  }

  // MARK: - Writable mounts

  /// - Throws: EBUSY; EPERM if the flags of chattr(1) forbid it; what the kernel's own open(2) of the file would answer, of
  ///   which it makes EIO: EROFS, ETXTBSY, EINVAL for O_DIRECT.
  private func open(
    _ request: Passthrough.Request, _ flags: CInt, _ caller: Caller, _ passthrough: Passthrough
  ) throws(Errno) -> FileOpening {
    // A backing file would send its event to programs that watch the layer, too, of which the announcer would make the next.
    if request.writes, expected?.isOwn(caller) == true { return try passthrough.open(request, .unbacked) }
    guard let (file, status) = try upperFile(of: request.node) else {
      return try passthrough.open(request, request.writes ? .unbacked : .cached)
    }
    if request.writes, !status.permits(flags & O_APPEND != 0 ? .append : .change) { throw .notPermitted }
    let opening = try passthrough.open(request, Self.demand(file, status, flags))
    switch opening {
    case .cached, .uncached: return opening
    case .passed, .writtenByRequests: break
    }
    // Only now, so that its events are known as the mount's.
    do throws(Errno) { try tryOut(file, status, flags) } catch {
      passthrough.undo(request)
      throw error
    }
    if request.writes {
      directWrites.withLock { $0 }?.willOpen()
      // What is being prepared has attributes that are about to change without a request, and so has the kernel.
      store.recordAttributeChange(of: request.node)
      try? kernel.withLock { $0 }?.invalidateAttributes(of: request.node)
    }
    return opening
  }

  /// The file to which a node is pinned from now on, and its attributes; nil if it is not a regular file of the upper layer.
  /// - Throws: ESTALE.
  private func upperFile(of node: NodeID) throws(Errno) -> (LayerFile, FileStatus)? {
    // Bounded in case a program replaces the file in a loop.
    for _ in 0..<16 {
      guard try store.kind(of: node) == .regular, try store.isInUpperLayer(node) else { return nil }
      guard let file = try pin(node) else { continue }
      let status = try file.attributes()
      // Until it was opened, the name may have come to be another layer's file, to which nothing must be written.
      if try store.isUpperFile(node, status) { return (file, status) }
    }
    throw .staleFileHandle
  }

  private static func demand(_ file: LayerFile, _ status: FileStatus, _ flags: CInt) -> Passthrough.Demand {
    // The kernel does not know the flag: a program may clear O_APPEND, and map the file.
    if status.isAppendOnly { return .appended(isReadable: flags & O_ACCMODE == O_RDWR) }
    // The kernel would clear the bits at each write, also at one by root, which leaves them.
    return status.mode & (S_ISUID | S_ISGID) != 0 ? .cached : .passed(file)
  }

  /// Opens the file as the kernel is about to, where that may fail.
  private func tryOut(_ file: LayerFile, _ status: FileStatus, _ flags: CInt) throws(Errno) {
    let writes = flags & O_ACCMODE != O_RDONLY
    var present: OpenFlags = flags & OpenFlags.direct.rawValue != 0 ? [.direct] : []
    let isDirect = !present.isEmpty
    if flags & O_APPEND != 0 { present.insert(.append) }
    try file.withDescriptor { descriptor throws(Errno) in
      if writes, try descriptor.isReadOnly() { throw .readOnlyFileSystem }
      // Opening for writing has an event at the close, so only what can be a running program is.
      if writes, status.mode & 0o111 != 0 {
        _ = try descriptor.reopened(present.union(.write))
      } else if isDirect {
        _ = try descriptor.reopened(present.union(.read))
      }
    }
  }
}

extension Passthrough.Request {
  /// The request that the calling thread processes.
  init(_ node: NodeID, _ flags: CInt) {
    // Its number is the same when it is sent again, but for the highest bit.
    self.init(
      node: node, number: RequestThread.request & (.max >> 1), writes: flags & O_ACCMODE != O_RDONLY)
  }
}
