import Fuse
import Glibc
import Layers
import Posix

/// Tables of strings that programs save in a writable mount with `strings=merge`.
///
/// A table that is about to be changed is copied up as the mount shows it, with all keys, and marked (`StagedTableMark`): so it
/// is shown as it is written. When no program has it open for writing any more, or when a file was renamed to its name,
/// the difference from the layers below takes its place. For that the kernel sends OPEN and RELEASE.
final class TableWriter: Sendable {
  private let store: NodeStore
  private let copyUp: NodeCopyUp
  private let descriptors: WriteDescriptors
  private let memory: SharedMemory?
  private struct State {
    /// nil before the start and at the end.
    var openings: WriteOpenings?
    /// Nodes of tables that were replaced by their differences, until the kernel forgets them.
    var replaced: Set<NodeID> = []
    /// Whether a successor answers what is opened and closed, if there is one.
    var isEnded = false
  }

  private let state = Locked(State())
  /// Held while a table is replaced by its difference, and while a program begins to have a file open for writing: what it
  /// wrote to a replaced one would be lost.
  private let settling = Locked(order: 9, ())
  /// Settles what a process has left that died.
  private let worker = SerialWorker(name: "tables")
  private let start = TimeSpec.now

  init(store: NodeStore, copyUp: NodeCopyUp, descriptors: WriteDescriptors, memory: SharedMemory?) {
    (self.store, self.copyUp, self.descriptors, self.memory) = (store, copyUp, descriptors, memory)
  }

  private var upper: UpperLayer { copyUp.upper }

  /// - Throws: EAGAIN.
  func start(_ watchdog: LayerWatchdog) throws(Errno) {
    state.withLock { $0.openings = WriteOpenings(memory) }
    try worker.start(watchdog)
  }

  func stop() {
    worker.stop()
    state.withLock { $0.isEnded = true }
  }

  /// Settles what is still open for the kernel: after an unmount, the last files may have been closed without a RELEASE.
  func settleAll() {
    let nodes = state.withLock { $0.openings.take()?.nodes ?? [] }
    for node in nodes { settle(node) }
  }

  // MARK: - OPEN, RELEASE and FORGET

  func open(_ node: NodeID, flags: CInt, _ reply: consuming Reply<ReplyKind.OpenFile>) {
    let request = Passthrough.Request(node, flags)
    guard request.writes, !node.isReserved else {
      _ = reply.sendCached()
      return
    }
    do throws(Errno) {
      let isCounted = try settling.withLock { _ throws(Errno) in
        guard count({ $0.open(request) }) else { return false }
        try checkPresence(of: node)
        return true
      }
      if !isCounted { return reply.leaveToSuccessor() }
    } catch {
      _ = count { $0.undo(request) }
      return reply.fail(error)
    }
    _ = count { [isSent = reply.sendCached()] in isSent ? $0.finish(request) : $0.undo(request) }
  }

  func release(_ node: NodeID, flags: CInt, _ reply: consuming Reply<ReplyKind.Status>) {
    let request = Passthrough.Request(node, flags)
    guard request.writes, !node.isReserved else { return reply.send() }
    guard count({ $0.close(request) }) else { return reply.leaveToSuccessor() }
    settle(node)
    reply.send()
    _ = count { $0.finish(request) }
  }

  func recordForget(of node: NodeID) {
    let isKnown = state.withLock { $0.openings?.hasWriter(node) == true || $0.replaced.contains(node) }
    guard isKnown, !store.isKnown(node) else { return }
    state.withLock { _ = $0.replaced.remove(node) }
    _ = count { $0.forget(node) }
  }

  /// - Returns: false if a successor is to count.
  private func count(_ body: (inout WriteOpenings) -> Void) -> Bool {
    state.withLock { state in
      guard !state.isEnded, var openings = state.openings.take() else { return false }
      body(&openings)
      state.openings = openings
      return true
    }
  }

  private func hasWriter(_ node: NodeID) -> Bool { state.withLock { $0.openings?.hasWriter(node) ?? false } }

  /// - Throws: ESTALE if a table was replaced by its difference, which the kernel looks up then.
  private func checkPresence(of node: NodeID) throws(Errno) {
    try refuseReplaced(node)
    guard tableKey(of: node) != nil else {
      // A merged table that a change in a layer has replaced.
      if try store.identity(of: node).isMergedTable { throw .staleFileHandle }
      return
    }
    try store.withLocation(of: node) { directory, name, identity throws(Errno) in
      _ = try directory.attributes(of: name, identity: identity)
    }
  }

  /// - Throws: ESTALE for a table that was replaced by its difference, which the kernel may still have at its name: what a program
  ///   wrote to it would be lost.
  func refuseReplaced(_ node: NodeID) throws(Errno) {
    if state.withLock({ $0.replaced.contains(node) }) { throw .staleFileHandle }
  }

  // MARK: - Tables that are about to be changed

  /// Marks a file of the upper layer if it is a table.
  /// - Throws: errors of setxattr(2).
  func stage(_ node: NodeID) throws(Errno) {
    guard let key = tableKey(of: node), try store.isInUpperLayer(node) else { return }
    let identity = try store.identity(of: node)
    let isStaged = try store.withLocation(of: node) { directory, name, identity throws(Errno) in
      try directory.isStagedTable(name, identity: identity)
    }
    if isStaged { return }
    try store.withUpperFile(of: node) { file throws(Errno) in try mark(file, node, key, identity) }
  }

  private func mark(
    _ file: LayerFile, _ node: NodeID, _ key: EntryKey, _ identity: FileIdentity
  ) throws(Errno) {
    guard let own = copyUp.own else { return try upper.markTable(file) }
    _ = try own.changing(
      node, { () throws(Errno) in (file, try file.attributes()) },
      { file throws(Errno) in try file.attributes() },
      { [upper] file throws(Errno) in try upper.markTable(file) })
  }

  /// Marks a file that was made just now, or that is about to be renamed to the name of a table, as far as that is possible.
  func stage(_ file: LayerFile, as name: CName, in directory: MergedDirectory) {
    if directory.isTable(name) { try? upper.markTable(file) }
  }

  /// Marks a file of the upper layer that is about to be renamed to the name of a table.
  func stage(
    _ name: CName, in directory: MergedDirectory, as newName: CName, in newDirectory: MergedDirectory
  ) {
    guard newDirectory.isTable(newName), let status = try? directory.top.attributes(of: name),
      status.isRegular, let file = try? directory.top.openPath(name, identity: status.identity)
    else { return }
    try? upper.markTable(file)
  }

  // MARK: - Tables that were changed

  /// The name of a node; nil unless it is that of a table.
  func tableKey(of node: NodeID) -> EntryKey? {
    guard let parent = try? store.parent(of: node),
      TableName.isTable(parent.name, foldsNames: store.stack.foldsNames),
      (try? store.isDetached(node)) == false, (try? store.kind(of: node)) == .regular
    else { return nil }
    return EntryKey(parent: parent.directory, name: parent.name)
  }

  /// Stores the difference if a node is a table that was changed, and no program has it open for writing.
  func settle(_ node: NodeID) {
    if !hasWriter(node), let key = tableKey(of: node) { settle(key, isChanged: false) }
  }

  /// Stores the difference in the place of a table that has all keys. If that fails, the table stays as it is, marked, until a
  /// program has written to it again, or until the next mount.
  /// - Parameter isChanged: whether it was changed, also if it is not marked.
  func settle(_ key: EntryKey, isChanged: Bool) {
    guard TableName.isTable(key.name, foldsNames: store.stack.foldsNames) else { return }
    // Repeated where a program replaces a table in a layer meanwhile.
    for _ in 0..<16 {
      do throws(Errno) {
        return try store.evictingOnDemand { () throws(Errno) in
          try settling.withLock { _ throws(Errno) in try settleOnce(key, isChanged: isChanged) }
        }
      } catch {
        if error != .staleFileHandle && error != .noSuchFileOrDirectory { return }
      }
    }
  }

  private func settleOnce(_ key: EntryKey, isChanged: Bool) throws(Errno) {
    let merged = try store.merged(of: key.parent)
    guard merged.isInUpperLayer, !isOpenForWriting(key) else { return }
    try withCName(key.name) { name throws(Errno) in
      guard case .file(layer: 0, let found)? = try merged.lookup(name), found.isRegular else { return }
      try merged.withPresentSpelling(of: name) { present, directory throws(Errno) in
        let identity = try directory.top.attributes(of: present).identity
        let isStaged = try directory.top.isStagedTable(present, identity: identity)
        if !isStaged, !isChanged { return }
        try store(try merged.storedTable(name), key, present, identity, in: directory, isStaged: isStaged)
      }
    }
  }

  private func isOpenForWriting(_ key: EntryKey) -> Bool {
    store.files(named: key.name, in: key.parent, of: 0).contains(where: hasWriter)
  }

  /// - Parameter name: in the upper layer's spelling.
  private func store(
    _ stored: StoredTable, _ key: EntryKey, _ name: CName, _ identity: FileIdentity,
    in directory: MergedDirectory, isStaged: Bool
  ) throws(Errno) {
    if stored == .marked && isStaged { return }
    // Programs that read it continue with it.
    let files = store.holdFiles(named: key.name, in: key.parent)
    for file in files { descriptors.close(file) }
    defer {
      store.recordChange(in: [key.parent])
      copyUp.queue.add(OwnChanges.invalidations(of: key))
    }
    switch stored {
    case .asItIs, .marked:
      let file = try directory.top.openPath(name, identity: identity)
      if stored == .marked { return try upper.markTable(file) }
      if isStaged { try upper.unmarkTable(file) }
    case .nothing: try upper.removeTable(name, identity: identity, from: directory.top)
    case .content(let content):
      try upper.replaceTable(name, identity: identity, with: content, in: directory.top)
    }
    if stored.isOtherFile { state.withLock { $0.replaced.formUnion(files) } }
  }

  /// Settles a table that a former process has left.
  func didLookUp(_ name: CName, in parent: NodeID, _ found: FileStatus) {
    guard found.changed < start, !found.identity.isMergedTable, found.isRegular,
      TableName.isTable([UInt8](bytesOf: name), foldsNames: store.stack.foldsNames),
      let directory = try? store.merged(of: parent), directory.isInUpperLayer,
      (try? directory.top.isStagedTable(name, identity: found.identity)) == true
    else { return }
    let key = EntryKey(parent: parent, name)
    _ = worker.add { [self] in settle(key, isChanged: false) }
  }
}
