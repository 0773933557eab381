import Fuse
import Layers
import Posix

/// Brings what is about to be changed into the upper layer: the directories above it, and a file itself.
///
/// A file's node stays the same, with its inode number and its caches in the kernel: the copy has the same content.
struct NodeCopyUp: Sendable {
  let store: NodeStore
  let upper: UpperLayer
  /// Where hard links that a copy breaks are invalidated. A request must not wait for the kernel itself, which may hold
  /// the directory's lock for it.
  let queue: InvalidationQueue
  /// nil where events of our own changes cannot be told.
  let own: OwnChanges?
  /// nil if no successor is to come.
  let intents: IntentLog?
  /// So that a file is copied once; by node number.
  private let locks = (0..<64).map { _ in Locked(order: 10, ()) }

  /// The most attempts where programs replace in the layers what is being copied.
  private static let maxAttempts = 16

  init(store: NodeStore, upper: UpperLayer, queue: InvalidationQueue, own: OwnChanges?, intents: IntentLog?) {
    (self.store, self.upper, self.queue, self.own) = (store, upper, queue, own)
    self.intents = intents
  }

  /// What is about to be done to an entry.
  enum Purpose {
    case change
    /// Bytes are added at the end.
    case append
    /// The flags of chattr(1) are set, which the copy does not have.
    case flags
  }

  // MARK: - Directories

  /// A directory, which the upper layer takes part in from now on.
  /// - Throws: ENOENT if no layer has it any more, ESTALE if it lost its name under a predecessor; EPERM if its flags, or
  ///   those of a directory above it, forbid to change it; errors of the upper layer.
  func directory(_ node: NodeID, for purpose: Purpose = .change) throws(Errno) -> MergedDirectory {
    if try store.isDetached(node) { return try namelessDirectory(node) }
    for _ in 0..<Self.maxAttempts {
      let merged = try store.merged(of: node)
      if merged.isInUpperLayer { return merged }
      for lacking in try lackingAncestors(of: node).reversed() {
        try copy(lacking, for: lacking == node ? purpose : .change)
      }
    }
    throw .staleFileHandle
  }

  /// A directory that has lost its name, but is open. One of a layer below that was removed gets a copy without a name,
  /// in which the kernel makes no entries; what was put into a copy of any other would be lost.
  private func namelessDirectory(_ node: NodeID) throws(Errno) -> MergedDirectory {
    guard let nameless = store.namelessDirectory(node) else { throw .staleFileHandle }
    if nameless.parts.isInUpperLayer { return nameless.parts }
    guard nameless.wasRemoved else { throw .noSuchFileOrDirectory }
    let copy = try upper.copyUpUnnamed(nameless.parts.attributeSource)
    store.replaceRemovedDirectory(node, by: copy)
    return copy
  }

  /// The directory and those above it that the upper layer does not take part in, from the bottom up. Not recursive,
  /// since a tree may be deeper than the thread's stack.
  private func lackingAncestors(of node: NodeID) throws(Errno) -> [NodeID] {
    var (lacking, next) = ([node], node)
    while next != .root {
      next = try store.parent(of: next).directory
      // It has no name by which it could be copied.
      if try store.isDetached(next) {
        _ = try namelessDirectory(next)
        break
      }
      if try store.merged(of: next).isInUpperLayer { break }
      lacking.append(next)
    }
    return lacking
  }

  private func copy(_ directory: NodeID, for purpose: Purpose) throws(Errno) {
    let present = try store.merged(of: directory)
    // The root always has a part of the upper layer.
    if present.isInUpperLayer || directory == .root { return }
    let source = present.attributeSource
    // The copy of a directory has no flags: entries of the directories in it would have to be made there.
    guard try source.attributes().permits(purpose) else { throw .notPermitted }
    let (parent, lastName) = try store.parent(of: directory)
    let (name, merged) = try store.merged(of: parent).presentSpelling(of: lastName)
    let target = merged.top
    guard target.layer == 0 else { throw .staleFileHandle }
    let key = EntryKey(parent: parent, name: name)
    try changing([key]) { () throws(Errno) in
      try withCName(name) { name throws(Errno) in
        try upper.copyUpDirectory(name, from: source, to: target)
        own?.recordEntry(try? target.attributes(of: name).identity, at: key, events: 1)
      }
    }
    // What is visible stays the same, so the kernel's caches stay true.
    if store.watcher != nil {
      _ = try store.refreshParts(of: directory, isForced: false, readsWhiteouts: false)
    }
    store.recordChange(in: [directory, parent])
  }

  // MARK: - Files

  /// Makes a non-directory one of the upper layer. One that has lost its name gets a copy without a name.
  /// - Parameters:
  ///   - writer: the user that changes it.
  ///   - size: the most bytes of its content that are needed, as it is about to be truncated; nil for all.
  ///   - staged: copies that were made before.
  /// - Throws: ESTALE if the file is lost; EPERM if its flags forbid the change; errors of the upper layer.
  func file(
    _ node: NodeID, by writer: EntryOwner, for purpose: Purpose = .change, size: UInt64? = nil,
    staged: StagedCopies? = nil
  ) throws(Errno) {
    if try store.isInUpperLayer(node) { return }
    try locks[Int(truncatingIfNeeded: node.rawValue % 64)].withLock { _ throws(Errno) in
      if try store.isInUpperLayer(node) { return }
      do throws(Errno) { try copyNamed(node, writer, purpose, size, staged) } catch {
        guard error == .staleFileHandle, try store.isPinned(node) else { throw error }
        // It has lost its name.
        try copyUnnamed(node, writer, size)
      }
    }
  }

  private func copyNamed(
    _ node: NodeID, _ writer: EntryOwner, _ purpose: Purpose, _ size: UInt64?, _ staged: StagedCopies?
  ) throws(Errno) {
    try store.withFileLocation(of: node) { location, source, lastName throws(Errno) in
      if source.layer == 0, !location.identity.isMergedTable { return }
      // The layer below still has what was removed from the mount.
      guard case .file(let layer, let former) = try store.merged(of: location.parent).lookup(lastName),
        layer == location.layer, former.identity == location.identity
      else { throw .staleFileHandle }
      guard former.permits(purpose) else { throw .notPermitted }
      let target = try directory(location.parent)
      try target.withPresentSpelling(of: lastName) { name, target throws(Errno) in
        let key = EntryKey(parent: location.parent, name)
        // Else the event of the new name could come before the node has it, and the file would get another node.
        try changing([key]) { () throws(Errno) in
          var copy = try copy(
            name, former, from: source, as: lastName, to: target.top, writer, size, staged,
            announcement(of: node, former, layer: layer, key))
          if former.isAppendOnly, purpose == .append {
            copy = try setAppendOnly(name, copy.identity, in: target.top)
          }
          own?.recordEntry(copy.identity, at: key, events: 1)
          own?.recordNewFile(node, copy)
          adopt(copy, for: node, keepsNumber: former.links == 1)
          store.recordChange(in: [location.parent])
        }
      }
    }
  }

  /// Records what is intended, before a copy gets its name.
  private func announcement(
    of node: NodeID, _ former: FileStatus, layer: Int, _ key: EntryKey
  ) -> ((FileIdentity) -> Void)? {
    if intents == nil, store.visibleTimes == nil { return nil }
    return { identity in
      store.recordTimeOfCopy(identity, of: former, layer: layer, key)
      intents?.begin(
        NodeIntent(
          kind: .copyUp, node: node, source: key, target: key, moved: identity,
          keepsNumber: former.links == 1))
    }
  }

  private func copy(
    _ name: CName, _ file: FileStatus, from source: LayerDirectory, as found: CName,
    to target: LayerDirectory, _ writer: EntryOwner, _ size: UInt64?, _ staged: StagedCopies?,
    _ willPublish: ((FileIdentity) -> Void)?
  ) throws(Errno) -> FileStatus {
    do throws(Errno) {
      if store.stack.tables != nil, file.isRegular,
        TableName.isTable([UInt8](bytesOf: found), foldsNames: store.stack.foldsNames)
      {
        return try upper.copyUpTable(
          name, from: source, as: found, file, replaces: source.layer == 0, to: target, size: size,
          as: writer, willPublish: willPublish)
      }
      return try upper.copyUp(
        name, from: source, as: found, identity: file.identity, to: target, size: size, as: writer,
        staged: staged, willPublish: willPublish)
    } catch {
      // The upper layer has got an entry of this name.
      throw error == .fileExists ? .staleFileHandle : error
    }
  }

  /// Sets the flag on a copy that has its name: until then it could not be linked.
  private func setAppendOnly(
    _ name: CName, _ identity: FileIdentity, in parent: LayerDirectory
  ) throws(Errno) -> FileStatus {
    let copy = try parent.openFile(name, identity: identity)
    // A file system without flags has the copy without.
    try? copy.withDescriptor { descriptor throws(Errno) in try descriptor.setAppendOnly() }
    return try copy.attributes()
  }

  /// Runs the body, which changes names, so that their events are known as ours.
  func changing<Result>(
    _ keys: [EntryKey], _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard let own else { return try body() }
    return try own.changing(keys, in: store, body)
  }

  /// Makes the copy the node's file.
  /// - Parameter keepsNumber: not if the former file has other names: the copy is another file from now on.
  func adopt(_ copy: FileStatus, for node: NodeID, keepsNumber: Bool) {
    let number =
      keepsNumber
      ? nil : store.inodeNumber(device: copy.identity.device, inode: copy.identity.inode)
    let (released, broken) = store.table.withLock { table -> (AnyObject?, [EntryKey]) in
      guard let slot = try? table.slot(of: node) else { return (nil, []) }
      return table.adoptCopy(copy, for: slot, inodeNumber: number)
    }
    withExtendedLifetime(released) {}
    queue.add(
      broken.map { Invalidation(subject: .name($0.parent, $0.name, layer: 0), aspects: .entry) })
    // The watch on the file itself is one on the former file.
    store.watcher?.unwatchFile(node)
    if keepsNumber { return }
    // Its inode number and link count.
    queue.add([Invalidation(subject: .file(node), aspects: .attributes)])
  }

  /// - Throws: ESTALE if its content cannot be had any more.
  private func copyUnnamed(_ node: NodeID, _ writer: EntryOwner, _ size: UInt64?) throws(Errno) {
    var file = try store.presentFile(of: node)
    if file == nil { file = try store.openByName(node).0 }
    guard let file else { throw .staleFileHandle }
    let copy = try upper.copyUpUnnamed(file, size: size, as: writer)
    let attributes = try copy.attributes()
    let released = store.table.withLock { table -> [AnyObject] in
      guard let slot = try? table.slot(of: node) else { return [] }
      let (former, _) = table.adoptCopy(attributes, for: slot, inodeNumber: nil)
      table[slot].isDetached = true
      let evicted = table.keep(copy, of: attributes.identity, for: slot).evicted
      return evicted + (former.map { [$0] } ?? [])
    }
    withExtendedLifetime(released) {}
  }
}

extension MergedDirectory {
  /// Whether the upper layer takes part in it.
  var isInUpperLayer: Bool { top.layer == 0 }
}

extension FileStatus {
  /// Whether the flags of chattr(1) permit it.
  func permits(_ purpose: NodeCopyUp.Purpose) -> Bool {
    switch purpose {
    case .change: !isImmutable && !isAppendOnly
    case .append: !isImmutable
    case .flags: true
    }
  }
}
