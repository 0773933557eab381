import Fuse
import Glibc
import Layers
import Posix
import Routing

/// Each FUSE request, and the part that replies to it.
extension Volume: FileSystem {
  public func lookup(_ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>) {
    entries.lookUp(name, in: parent, reply)
  }

  public func forget(_ node: NodeID, lookups: UInt64) {
    entries.forget(node, lookups: lookups)
    files.recordForget(of: node)
  }

  public func getAttributes(of node: NodeID, reply: consuming Reply<ReplyKind.Attributes>) {
    attributes.read(of: node, reply)
  }

  public func statfs(reply: consuming Reply<ReplyKind.Statfs>) { attributes.statfs(reply) }

  // MARK: - Files

  public func read(_ node: NodeID, at offset: Int64, size: Int, reply: consuming Reply<ReplyKind.Bytes>) {
    files.read(node, at: offset, size: size, reply)
  }

  public func seek(
    _ node: NodeID, to offset: Int64, whence: CInt, reply: consuming Reply<ReplyKind.Offset>
  ) {
    files.seek(node, to: offset, whence: whence, reply)
  }

  public func readLink(_ node: NodeID, reply: consuming Reply<ReplyKind.Bytes>) {
    files.readLink(node, reply)
  }

  public func openFile(_ node: NodeID, flags: CInt, reply: consuming Reply<ReplyKind.OpenFile>) {
    files.open(node, flags: flags, reply)
  }

  public func release(_ node: NodeID, flags: CInt, reply: consuming Reply<ReplyKind.Status>) {
    files.release(node, flags: flags, reply)
  }

  public func poll(
    _ node: NodeID, for events: CInt, handle: PollHandle?, reply: consuming Reply<ReplyKind.PollEvents>
  ) {
    if node == ControlFile.node, !isReadByRing(events) {
      reply.send(events: control.events(events, handle, reply.caller))
    } else {
      // Always ready, like a regular file.
      reply.send(events: POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM)
    }
  }

  /// Whether it is io_uring(7) that polls, before it reads for a program that wants the text and no notice of the next
  /// result. poll(2), select(2) and epoll(7) always ask for POLLHUP when they ask for POLLIN, and a poll by the ring's
  /// own operation has just the events that the program named.
  private func isReadByRing(_ events: CInt) -> Bool {
    let read = POLLIN | POLLRDNORM | POLLPRI
    return events & (read | POLLHUP) == read
  }

  public func ioctl(
    _ command: UInt32, of node: NodeID, input: UnsafeRawBufferPointer, size: Int,
    reply: consuming Reply<ReplyKind.Ioctl>
  ) {
    if node == ControlFile.node, ResultsProtocol.isCommand(command, size: size) {
      return control.sendResults(from: input, size: size, reply)
    }
    if let request = FileFlagsRequest(command) { return flags.run(request, of: node, input, reply) }
    statusRequests.run(command, of: node, size: size, reply)
  }

  // MARK: - Directories

  public func openDirectory(_ node: NodeID, reply: consuming Reply<ReplyKind.OpenDirectory>) {
    directories.open(node, reply)
  }

  public func readDirectory(
    _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool,
    reply: consuming Reply<ReplyKind.Bytes>
  ) {
    directories.read(node, after: cookie, size: size, withEntries: withEntries, reply)
  }

  // MARK: - Extended attributes

  public func getExtendedAttribute(
    _ name: CName, of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>
  ) {
    extendedAttributes.read(name, of: node, size: size, reply)
  }

  public func listExtendedAttributes(
    of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>
  ) {
    extendedAttributes.list(of: node, size: size, reply)
  }

  // MARK: - Changes

  public func write(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64, appends: Bool,
    reply: consuming Reply<ReplyKind.Write>
  ) {
    if node == ControlFile.node {
      FileSystemUser.actAsSelf()
      commands.write(bytes, at: offset, appends: appends, reply)
    } else {
      writes.write(bytes, to: node, at: offset, appends: appends, reply)
    }
  }

  public func writeBack(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64,
    reply: consuming Reply<ReplyKind.Write>
  ) {
    if let writer, !node.isReserved {
      return writer.files.write(bytes, to: node, at: offset, appends: false, isMapped: true, reply)
    }
    reply.fail(.readOnlyFileSystem)
    // Opening for writing cannot be refused: OPEN is declined. The kernel would keep the changed page for all readers.
    queue.add([Invalidation(subject: .file(node), aspects: .content)])
  }

  public func allocate(
    _ node: NodeID, mode: CInt, at offset: Int64, count: Int64, reply: consuming Reply<ReplyKind.Status>
  ) {
    writes.allocate(node, mode: mode, at: offset, count: count, reply)
  }

  public func synchronize(_ node: NodeID, dataOnly: Bool, reply: consuming Reply<ReplyKind.Status>) {
    writes.synchronize(node, dataOnly: dataOnly, reply)
  }

  public func synchronizeDirectory(
    _ node: NodeID, dataOnly: Bool, reply: consuming Reply<ReplyKind.Status>
  ) {
    writes.synchronizeDirectory(node, dataOnly: dataOnly, reply)
  }

  public func setAttributes(
    of node: NodeID, _ changes: AttributeChanges, reply: consuming Reply<ReplyKind.Attributes>
  ) {
    writes.setAttributes(of: node, changes, reply)
  }

  public func setExtendedAttribute(
    _ name: CName, of node: NodeID, _ value: UnsafeRawBufferPointer, flags: CInt,
    reply: consuming Reply<ReplyKind.Status>
  ) {
    extendedAttributes.set(name, of: node, value, flags: flags, reply)
  }

  public func removeExtendedAttribute(
    _ name: CName, of node: NodeID, reply: consuming Reply<ReplyKind.Status>
  ) {
    extendedAttributes.remove(name, of: node, reply)
  }

  public func make(
    _ entry: NewEntry, _ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>
  ) {
    writes.make(entry, name, in: parent, reply)
  }

  public func makeLink(
    to node: NodeID, _ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>
  ) {
    guard let writer else { return reply.fail(.readOnlyFileSystem) }
    if node.isReserved { return reply.fail(.notPermitted) }
    writer.entries.makeLink(to: node, name, in: parent, reply)
  }

  public func remove(
    _ name: CName, isDirectory: Bool, from parent: NodeID, reply: consuming Reply<ReplyKind.Status>
  ) {
    writes.remove(name, isDirectory: isDirectory, from: parent, reply)
  }

  public func rename(
    _ name: CName, in parent: NodeID, to newName: CName, in newParent: NodeID, flags: UInt32,
    reply: consuming Reply<ReplyKind.Status>
  ) {
    writes.rename(name, in: parent, to: newName, in: newParent, RenameFlags(rawValue: flags), reply)
  }

  // MARK: - Work ahead

  public var answeringProcessor: Int32? {
    listingPrefetcher.processors.answering ?? filePrefetcher.processors.answering
  }

  public func didBecomeIdle() {
    listingPrefetcher.clear()
    // The threads may not end: where a layer does not answer.
    listingPrefetcher.processors.end()
    filePrefetcher.processors.end()
  }
}
