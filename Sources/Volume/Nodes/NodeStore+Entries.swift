import Fuse
import Layers
import Posix

extension NodeStore {
  /// The reply for an entry that was found in a directory; its node has one lookup more.
  ///
  /// Where a file has a node for several spellings, a change tells the node, not the name that was used. So on a writable
  /// mount the kernel must look up the name right before.
  /// - Throws: EIO for a file type that Linux does not know; what resolving a directory answers.
  func entry(
    _ found: Entry, _ name: CName, in parent: NodeID, _ merged: MergedDirectory
  ) throws(Errno) -> EntryReply {
    var entryTimeout = timeout(in: parent)
    switch found {
    case .directory(let child, let attributes):
      return try directoryEntry(child, attributes, name, in: parent, merged, entryTimeout)
    case .file(let layer, let attributes):
      guard let kind = attributes.kind else { throw .ioError }
      if attributes.identity.isMergedTable, stack.tables?.isVolatile(attributes.identity) != false {
        entryTimeout = 0
      }
      let node = try lookUpFile(name, in: parent, attributes, kind, layer: layer)
      var isSizeSettled = node.isSizeSettled
      var (attributes, timeout) = (attributes, entryTimeout)
      if attributes.links > 1, let part = merged.part(of: layer, with: name, attributes.identity) {
        (attributes, timeout) = linkedAttributes(of: node.number, part, name, attributes, timeout)
      }
      if attributes.links > 1 {
        isSizeSettled = try table.withLock { table throws(Errno) in
          let slot = try table.slot(of: node.number)
          // They were read again.
          table.memory?.add(Fingerprint(attributes), of: slot)
          table.recordRights(attributes, of: slot)
          return table.recordReportedSize(attributes.size, of: slot)
        }
      }
      if !isSizeSettled || isWrittenDirectlyNow(node.number) { timeout = 0 }
      var reply = NodeAttributes(shown(attributes), inodeNumber: node.inodeNumber, timeout: timeout)
      reply.earliestTime = earliestTime(of: attributes, layer: layer, name, in: parent)
      return EntryReply(
        node: node.number, attributes: reply, timeout: isWritable && spellings != nil ? 0 : entryTimeout)
    }
  }

  private func directoryEntry(
    _ child: MergedDirectory, _ attributes: FileStatus, _ name: CName, in parent: NodeID,
    _ above: MergedDirectory, _ entryTimeout: Double
  ) throws(Errno) -> EntryReply {
    let node = try lookUpDirectory(name, in: parent, above, child)
    do throws(Errno) {
      // Read again once the parts are watched.
      var (attributes, child) = (attributes, child)
      if watcher != nil || isWritable {
        child = try merged(of: node.number, hint: FoundDirectory(merged: child, above: above))
        attributes = try self.attributes(of: child)
      }
      recordReport(of: child, attributes, node.number)
      return EntryReply(
        node: node.number,
        attributes: NodeAttributes(
          shown(attributes), inodeNumber: node.inodeNumber, timeout: timeout(in: node.number)),
        timeout: entryTimeout)
    } catch {
      forget(node.number, lookups: 1)
      throw error
    }
  }

  /// The node of a directory that was found, which has one lookup more.
  func lookUpDirectory(
    _ name: CName, in parent: NodeID, _ above: MergedDirectory, _ child: MergedDirectory
  ) throws(Errno) -> (number: NodeID, inodeNumber: UInt64) {
    let bytes = [UInt8](bytesOf: name)
    let ownNumber = isOnlyInUpperLayer(child) ? inodeNumber(of: child.top) : nil
    if ownNumber == nil { dropUnknownNumbers() }
    takeName(bytes, in: parent, fromOtherThan: FoundDirectory(merged: child, above: above))
    var renamed: NamelessDirectory?
    defer { withExtendedLifetime(renamed) {} }
    var isShared = spellings != nil && isWritable
    let node = try table.withLock { table throws(Errno) in
      let parent = try table.slot(of: parent)
      let number = ownNumber ?? inodeNumber(ofDirectory: bytes, in: table[parent].inodeNumber)
      renamed = rename(child.parts, to: bytes, in: parent, inodeNumber: number, &table)
      var slot = table.lookUpShared(bytes, in: parent)
      if slot != 0 {
        isShared = true
        // Another spelling can be another directory of a layer.
        if let state = table[slot].directory, let parts = state.parts, !parts.isEmpty,
          !parts.contains(where: { known in child.parts.contains { PartIdentity($0) == known } })
        {
          state.needsRefresh = true
        }
      } else {
        slot = table.lookUpDirectory(bytes, in: parent, inodeNumber: number)
      }
      // The catalogs of another language contribute to the tables in it.
      if renamed != nil, table.mergesTables { table[slot].directory?.needsRefresh = true }
      return (table.number(of: slot), table[slot].inodeNumber)
    }
    if renamed != nil { watcher?.directoryWasRenumbered(node.0) }
    if isShared { recordSpelling(bytes, in: parent) }
    return node
  }

  /// Whether a directory of a writable mount can be renamed. Its inode number and its link count are then those of the
  /// upper layer's directory, of which it consists.
  private func isOnlyInUpperLayer(_ directory: MergedDirectory) -> Bool {
    isWritable && directory.parts.count == 1 && directory.isInUpperLayer
  }

  private func inodeNumber(of directory: LayerDirectory) -> UInt64 {
    inodeNumber(device: directory.identity.device, inode: directory.identity.inode)
  }

  private func attributes(of directory: MergedDirectory) throws(Errno) -> FileStatus {
    isOnlyInUpperLayer(directory) ? try directory.top.attributes() : try directory.attributes()
  }

  private func lookUpFile(
    _ name: CName, in parent: NodeID, _ attributes: FileStatus, _ kind: FileKind, layer: Int
  ) throws(Errno) -> (number: NodeID, inodeNumber: UInt64, isSizeSettled: Bool) {
    let bytes = [UInt8](bytesOf: name)
    let number = inodeNumber(device: attributes.identity.device, inode: attributes.identity.inode)
    return try table.withLock { table throws(Errno) in
      let slot = table.lookUpFile(
        attributes.identity, layer: layer, kind: kind, name: bytes, in: try table.slot(of: parent),
        inodeNumber: number, soleSize: attributes.links > 1 ? nil : attributes.size)
      table.memory?.add(Fingerprint(attributes), of: slot)
      table.recordRights(attributes, of: slot)
      let isSettled = attributes.links > 1 || table.recordReportedSize(attributes.size, of: slot)
      return (table.number(of: slot), number, isSettled)
    }
  }

  // MARK: - Attributes

  /// - Throws: ESTALE; ENOENT for a directory that no layer has any more.
  func attributes(of node: NodeID) throws(Errno) -> NodeAttributes {
    // Before they are read, so that those are final which the kernel may keep.
    let isWrittenDirectly = isWrittenDirectlyNow(node)
    let (isDirectory, parent, nameless) = try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      return (
        table[slot].kind == .directory, table.number(of: max(table[slot].parent, NodeTable.root)),
        table.namelessDirectory(node)
      )
    }
    var attributes: FileStatus
    var timeout: Double
    if let nameless {
      attributes = try nameless.parts.attributes()
      if nameless.wasRemoved { attributes.links = 0 }
      timeout = 0
    } else if isDirectory {
      let merged = try merged(of: node)
      attributes = try self.attributes(of: merged)
      recordReport(of: merged, attributes, node)
      timeout = self.timeout(in: node)
    } else {
      (attributes, timeout) = try fileAttributes(of: node, self.timeout(in: parent))
    }
    let number = try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      if !isDirectory {
        table.memory?.add(Fingerprint(attributes), of: slot)
        table.recordRights(attributes, of: slot)
        if !table.recordReportedSize(attributes.size, of: slot) || isWrittenDirectly { timeout = 0 }
      }
      return table[slot].inodeNumber
    }
    var reply = NodeAttributes(shown(attributes), inodeNumber: number, timeout: timeout)
    if !isDirectory { reply.earliestTime = earliestTime(of: attributes, node) }
    return reply
  }

  private func fileAttributes(of node: NodeID, _ timeout: Double) throws(Errno) -> (FileStatus, Double) {
    let isDetached = try table.withLock { table throws(Errno) in table[try table.slot(of: node)].isDetached }
    if let file = try presentFile(of: node) {
      let attributes = try file.attributes()
      if (attributes.links == 1 && !isDetached) || watcher == nil { return (attributes, timeout) }
      return watchFile(node, file)
        ? (try file.attributes(), timeout) : (try file.attributes(), min(timeout, CacheMode.short))
    }
    // Only a watch on the file itself reports changes to a file that has lost its name.
    let isReported = !isDetached || watcher?.watchesFile(node) ?? true
    if !isReported { recordUncovered(node) }
    let timeout = isReported ? timeout : min(timeout, CacheMode.short)
    return try withLocation(of: node) { directory, name, identity throws(Errno) in
      let attributes = try directory.attributes(of: name, identity: identity)
      if attributes.links == 1 { return (attributes, timeout) }
      return linkedAttributes(of: node, directory, name, attributes, timeout)
    }
  }

  /// The attributes of a file with several hard links, and the seconds for which they may be cached. Only a
  /// watch on the file itself reports what happens to it by a name elsewhere.
  private func linkedAttributes(
    of node: NodeID, _ part: LayerDirectory, _ name: CName, _ attributes: FileStatus, _ timeout: Double
  ) -> (FileStatus, Double) {
    if watcher == nil { return (attributes, timeout) }
    do throws(Errno) {
      try watchFile(node, name, in: part)
      return (try part.attributes(of: name, identity: attributes.identity), timeout)
    } catch {
      // No watches are left, or the file was replaced just now. Read again since it was recorded as uncovered.
      let attributes = (try? part.attributes(of: name, identity: attributes.identity)) ?? attributes
      return (attributes, min(timeout, CacheMode.short))
    }
  }

  // MARK: - Watches on files themselves

  /// - Throws: as `NodeWatcher.watchFile`.
  func watchFile(_ node: NodeID, _ name: CName, in part: LayerDirectory) throws(Errno) {
    guard let watcher else { return }
    do throws(Errno) {
      _ = try part.withWatchPath(of: name) { path, follows throws(Errno) in
        try watcher.watchFile(node, at: path, follows: follows)
      }
    } catch {
      if error != .noSuchFileOrDirectory { recordUncovered(node) }
      throw error
    }
    unwatchIfForgotten(node)
    unwatch(node, ifCopiedSince: part.layer)
  }

  /// Removes a watch that was set while the file was copied up, and is one on the former file.
  private func unwatch(_ node: NodeID, ifCopiedSince layer: Int) {
    guard layer > 0, fileLayer(of: node) == 0 else { return }
    watcher?.unwatchFile(node)
    recordUncovered(node)
  }

  /// nil for a node that the kernel has forgotten.
  private func fileLayer(of node: NodeID) -> Int? {
    table.withLock { table in (try? table.slot(of: node)).map { Int(table[$0].layer) } }
  }

  /// Watches an open file itself; an entry of an archive needs no watch, since it never changes.
  /// - Returns: whether every change to it is reported from now on.
  func watchFile(_ node: NodeID, _ file: LayerFile) -> Bool {
    guard let watcher else { return false }
    let layer = fileLayer(of: node) ?? 0
    do throws(Errno) {
      let isWatched: Void? = try file.withWatchPath { path throws(Errno) in
        try watcher.watchFile(node, at: path, follows: true)
      }
      if isWatched != nil {
        unwatchIfForgotten(node)
        unwatch(node, ifCopiedSince: layer)
      }
      return true
    } catch {
      recordUncovered(node)
      return false
    }
  }

  /// Removes the watches of a node that was forgotten while they were being set.
  func unwatchIfForgotten(_ node: NodeID) {
    guard let watcher else { return }
    let isKnown = table.withLock { (try? $0.slot(of: node)) != nil }
    if isKnown { return }
    watcher.unwatch(node, except: [])
    watcher.unwatchFile(node)
  }
}
