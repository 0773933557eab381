import Fuse
import Glibc
import Layers
import Posix

/// Entries by their names: what LOOKUP answers, and FORGET takes back.
extension Volume {
  public func lookup(_ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>) {
    if let expectation = expectation(of: reply.caller),
      let answer = expectation.reply(toLookup: EntryKey(parent: parent, name))
    {
      return send(answer, reply)
    }
    if parent == .root, control.isNamed(name) {
      _ = reply.send(controlEntry)
      return
    }
    if ResourceFolderNodes.contain(parent) || (parent == .root && resources.isFolder(name)) {
      return lookUpResource(name, in: parent, reply)
    }
    let entry: EntryReply?
    do throws(Errno) {
      let merged = try merged(of: parent)
      entry = try merged.lookup(name).map { found throws(Errno) in
        try answer(found, name, in: parent, merged)
      }
    } catch {
      reply.fail(error)
      return
    }
    guard let entry else { return sendNegative(in: parent, reply) }
    if !reply.send(entry) { forget(entry.node, lookups: 1) }
  }

  private func sendNegative(in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>) {
    let timeout = options.cache.timeout(isCovered: isCovered(parent))
    if timeout > 0 { reply.sendNegative(timeout: timeout) } else { reply.fail(.noSuchFileOrDirectory) }
  }

  public func forget(_ node: NodeID, lookups: UInt64) {
    if ResourceFolderNodes.contain(node) {
      resources.folders.withLock { $0.forget(node, lookups: lookups) }
      return
    }
    // What is let go is closed outside the lock.
    let released = table.withLock { table in
      guard let slot = try? table.slot(of: node) else { return NodeTable.ReleasedResources() }
      return table.forget(slot, lookups: lookups)
    }
    guard let watches = coherence?.watches else { return }
    for node in released.directories { watches.removeWatches(of: node) }
    for file in released.linkedFiles { watches.removeFileWatch(file) }
  }

  /// The answer for an entry that was found in a directory; its node has one lookup more.
  func answer(
    _ found: Entry, _ name: CName, in parent: NodeID, _ merged: MergedDirectory
  ) throws(Errno) -> EntryReply {
    let entryTimeout = options.cache.timeout(isCovered: isCovered(parent))
    switch found {
    case .directory(let child, let attributes):
      let node = try lookUpDirectory(name, in: parent)
      do throws(Errno) {
        let attributes = try watchedAttributes(of: node.number, hint: child) ?? attributes
        let timeout = options.cache.timeout(isCovered: isCovered(node.number))
        return EntryReply(
          node: node.number,
          attributes: NodeAttributes(attributes, inodeNumber: node.inodeNumber, timeout: timeout),
          timeout: entryTimeout)
      } catch {
        forget(node.number, lookups: 1)
        throw error
      }
    case .file(let layer, let attributes):
      // A type that Linux does not know cannot be shown.
      guard let kind = attributes.kind else { throw .ioError }
      let node = try lookUpFile(name, in: parent, attributes, kind, layer: layer)
      var (attributes, timeout) = (attributes, entryTimeout)
      if attributes.links > 1, let part = merged.part(of: layer) {
        (attributes, timeout) = linkedAttributes(of: node.number, part, name, attributes, timeout)
      }
      try tell(attributes.size, of: node.number)
      return EntryReply(
        node: node.number,
        attributes: NodeAttributes(attributes, inodeNumber: node.inodeNumber, timeout: timeout),
        timeout: entryTimeout)
    }
  }

  private func lookUpDirectory(
    _ name: CName, in parent: NodeID
  ) throws(Errno) -> (number: NodeID, inodeNumber: UInt64) {
    let bytes = [UInt8](bytesOf: name)
    return try table.withLock { table throws(Errno) in
      let parent = try table.slot(of: parent)
      let number = InodeNumbers.directory(parent: table[parent].inodeNumber, name: name)
      let slot = table.lookUpDirectory(bytes, in: parent, inodeNumber: number)
      return (table.number(of: slot), number)
    }
  }

  private func lookUpFile(
    _ name: CName, in parent: NodeID, _ attributes: FileStatus, _ kind: FileKind, layer: Int
  ) throws(Errno) -> (number: NodeID, inodeNumber: UInt64) {
    let bytes = [UInt8](bytesOf: name)
    let number = numbers.file(device: attributes.identity.device, inode: attributes.identity.inode)
    return try table.withLock { table throws(Errno) in
      let slot = table.lookUpFile(
        attributes.identity, layer: layer, kind: kind, name: bytes, in: try table.slot(of: parent),
        inodeNumber: number)
      return (table.number(of: slot), number)
    }
  }

  /// Notes which size the kernel is about to be told of a file.
  private func tell(_ size: UInt64, of node: NodeID) throws(Errno) {
    try table.withLock { table throws(Errno) in table.recordReportedSize(size, of: try table.slot(of: node)) }
  }

  /// A directory's attributes, read once its parts are watched; nil where nothing is watched.
  private func watchedAttributes(
    of directory: NodeID, hint: MergedDirectory
  ) throws(Errno) -> FileStatus? {
    if coherence == nil { return nil }
    return try merged(of: directory, hint: hint).attributes()
  }

  /// The attributes of a file with several names. What happens to it by a name elsewhere is told only by a
  /// watch on the file itself.
  /// - Returns: the attributes, and the seconds for which they may be kept.
  func linkedAttributes(
    of node: NodeID, _ part: LayerDirectory, _ name: CName, _ attributes: FileStatus, _ timeout: Double
  ) -> (FileStatus, Double) {
    if coherence == nil { return (attributes, timeout) }
    do throws(Errno) {
      try watchByItself(node, name, in: part)
      return (try part.attributes(of: name, identity: attributes.identity), timeout)
    } catch {
      // Out of watches, or replaced this moment.
      return (attributes, min(timeout, CacheMode.short))
    }
  }
}
