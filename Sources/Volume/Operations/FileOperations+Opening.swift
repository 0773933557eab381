import Fuse
import Glibc
import Layers
import Posix

/// OPEN and RELEASE. The kernel sends them with `-o passthrough` only.
///
/// On a writable mount the upper layer's files are passed through, for reading and writing, and no others: one of a layer
/// below would keep its backing file when it is copied up. So such a file is open through the page cache, also after it was
/// copied up, until its last close, and its readers see what is written.
extension FileOperations {
  /// For `bundlefs status`; nil without `-o passthrough`.
  var passthroughStatus: PassthroughStatus? { passthrough.withLock { $0 }.status }

  func setPassthrough(_ mode: PassthroughMode) {
    passthrough.withLock { $0 = mode }
    if case .possible(let passthrough) = mode, writer != nil {
      store.directWriters.withLock { $0 = passthrough }
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
    // ENOSYS: the kernel sends neither OPEN nor RELEASE from now on.
    case .off, .impossible: reply.fail(.noFunction)
    }
  }

  private func open(
    _ node: NodeID, flags: CInt, _ passthrough: Passthrough, _ reply: consuming Reply<ReplyKind.OpenFile>
  ) {
    if node.isReserved {
      _ = reply.sendCached()
      return
    }
    let writes = Self.writes(flags)
    let file: BackingFile?
    do throws(Errno) {
      file =
        writes
        ? try openForWriting(node, appends: flags & O_APPEND != 0, reply.caller, passthrough)
        : try openForReading(node, passthrough)
    } catch {
      return reply.fail(error)
    }
    let isTaken = if let file { reply.send(file) } else { reply.sendCached() }
    if !isTaken { passthrough.close(node, writes: writes) }
  }

  private static func writes(_ flags: CInt) -> Bool { flags & O_ACCMODE != O_RDONLY }

  func release(_ node: NodeID, flags: CInt, _ reply: consuming Reply<ReplyKind.Status>) {
    let passthrough: Passthrough
    switch self.passthrough.withLock({ $0 }) {
    case .possible(let present): passthrough = present
    case .ended: return reply.leaveToSuccessor()
    case .off, .impossible: return reply.send()
    }
    // In this order, so that a process that dies in between counts too many openings and never too few: then the file stays
    // open until the mount ends. What is sent again was not counted.
    reply.send()
    let writes = Self.writes(flags)
    if writes, passthrough.mayWrite(to: node) { recordDirectWrites(to: node) }
    passthrough.close(node, writes: writes)
  }

  private func openForReading(_ node: NodeID, _ passthrough: Passthrough) throws(Errno) -> BackingFile? {
    if let present = passthrough.join(node) { return present }
    return passthrough.open(node, try fileToPass(of: node, passthrough))
  }

  /// The file to which a node is pinned from now on; nil if it is not to be passed through, in an archive, or if the kernel
  /// may keep another size of it.
  private func fileToPass(of node: NodeID, _ passthrough: Passthrough) throws(Errno) -> LayerFile? {
    let isWanted = try store.table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      guard table[slot].kind == .regular, let size = table[slot].reportedSize else { return false }
      if writer != nil { return table[slot].layer == 0 }
      return size >= passthrough.smallest && store.stack[Int(table[slot].layer)].archive == nil
    }
    return isWanted ? try openFile(of: node) : nil
  }

  // MARK: - Writing

  /// - Returns: the backing file; nil for the page cache, from which WRITEs come.
  /// - Throws: EROFS on a read-only mount; EPERM if the flags of a file of the upper layer forbid it.
  private func openForWriting(
    _ node: NodeID, appends: Bool, _ caller: Caller, _ passthrough: Passthrough
  ) throws(Errno) -> BackingFile? {
    if writer == nil { throw .readOnlyFileSystem }
    if expected?.isOwn(caller) == true { return try openForAnnouncer(node, passthrough) }
    let isInUpperLayer = try store.isInUpperLayer(node)
    guard isInUpperLayer, try store.kind(of: node) == .regular else {
      return passthrough.joinCached(node) ? nil : passthrough.open(node, nil, writes: true)
    }
    let status = try store.evictingOnDemand { () throws(Errno) in try store.attributes(of: node).attributes }
    guard status.permits(appends ? .append : .change) else { throw .notPermitted }
    if passthrough.joinCached(node) { return nil }
    // What is being prepared has attributes and content that are about to change without a request.
    store.recordAttributeChange(of: node)
    if let present = passthrough.join(node, writes: true) { return present }
    // A program may clear O_APPEND, and the kernel does not know the flag. Where the file is open already, it keeps to the
    // O_APPEND of the opening, but for asynchronous writes.
    return passthrough.open(node, status.isAppendOnly ? nil : try openFile(of: node), writes: true)
  }

  /// Opens a file for an event that programs are to receive. A backing file would send one to those that watch the layer, too,
  /// of which the announcer would make the next.
  /// - Throws: EBUSY where the kernel demands one.
  private func openForAnnouncer(_ node: NodeID, _ passthrough: Passthrough) throws(Errno) -> BackingFile? {
    if passthrough.open(node, nil, writes: true) == nil { return nil }
    passthrough.close(node, writes: true)
    throw .resourceBusy
  }

  /// Records the state in which programs leave a file to which they have written directly, so that the events of that are
  /// known as the mount's.
  private func recordDirectWrites(to node: NodeID) {
    store.recordAttributeChange(of: node)
    guard let own = writer?.own, let status = try? store.attributes(of: node).attributes else { return }
    if own.recordDirectWrites(to: node, status) { return }
    // Another program may have written to it, too, and its event come when the state is known.
    try? kernel.withLock { $0 }?.invalidateAttributes(of: node)
  }
}
