import Fuse
import Layers
import Posix
import Synchronization

/// Watches the layers: one thread reads inotify events and queues the invalidations that they need.
///
/// Three rules make the kernel's caches coherent. A directory is watched before it is read. A change updates the
/// node table first and is queued for the kernel afterwards. The invalidator holds no lock, so the kernel can
/// block it until the requests in flight in that directory, whose answers may be older than the change, are done.
final class LayerWatcher: Sendable {
  let watches: WatchTable
  private let queue: InvalidationQueue
  private let faults = LayerFaults()
  private let archives: ArchiveMonitor
  private let roots: LayerRootMonitor
  private let signal: WatcherSignal
  private let barriers: LayerBarriers
  private let mountTable: MountTableWatch
  /// nil if all events are taken for those of other programs.
  private let own: OwnChanges?
  private let state = Locked(State())
  /// Whether events that were read are not handled yet.
  private let isHandling = Atomic(false)

  private struct State {
    /// Called once the events that are queued now have been read.
    var barriers: [@Sendable () -> Void] = []
    var isStopped = false
    var thread: ThreadHandle?
    var overflows = 0
    /// Whether directories that cannot be watched have to be polled.
    var hasUncovered = false
  }

  /// - Parameter isCoherent: whether it is to watch what is in the layers; otherwise it follows their roots only.
  /// - Throws: EMFILE beyond `fs.inotify.max_user_instances`.
  init(
    _ layers: [Layer], mountPoint: [UInt8], _ queue: InvalidationQueue, own: OwnChanges? = nil,
    isCoherent: Bool = true
  ) throws(Errno) {
    self.queue = queue
    self.own = own
    mountTable = try MountTableWatch()
    watches = try WatchTable()
    signal = try WatcherSignal()
    barriers = LayerBarriers(layers, signal)
    archives = ArchiveMonitor(layers, watches, faults, queue, barriers, isCoherent: isCoherent)
    roots = LayerRootMonitor(
      layers, mountPoint: mountPoint, watches, faults, archives, queue, barriers, signal)
  }

  /// Calls a function from now on when a folder has taken the place of an archive.
  func whenFolderComes(_ action: @escaping @Sendable () -> Void) { archives.whenFolderComes(action) }

  /// Starts the watcher thread. From now on requests may be answered.
  func start(_ store: NodeStore, _ watchdog: LayerWatchdog) throws(Errno) {
    try archives.start(watchdog)
    try roots.start(watchdog)
    roots.followServers(store)
    let thread = ThreadHandle(try Thread(name: "layer-watcher", hasShortSlice: true) { self.run(store) })
    state.withLock { $0.thread = thread }
  }

  /// Ends the thread once it has queued what it has read.
  func stop() {
    let thread = state.withLock { state in
      state.isStopped = true
      return state.thread
    }
    signal.send()
    thread?.join()
    roots.stop()
    archives.stop()
  }

  /// Calls a function when every change finished by now is visible through the mount.
  /// - Returns: false when it will not be called, since the mount ends.
  func barrier(_ reached: @escaping @Sendable () -> Void) -> Bool {
    let isStopped = state.withLock { state in
      if !state.isStopped { state.barriers.append(reached) }
      return state.isStopped
    }
    if !isStopped { signal.send() }
    return !isStopped
  }

  /// Queues checks of all layers, which may have changed before this process.
  func checkLayers(_ store: NodeStore) {
    for layer in store.stack.layers.indices {
      roots.requestCheck([.path, .archiveWritten], of: layer, store)
    }
  }

  var overflows: Int { state.withLock { $0.overflows } }

  // MARK: - The watcher thread

  /// Milliseconds between two polls of what cannot be watched.
  private static let pollInterval: CInt = 500
  /// Milliseconds from one look to the next while the mount itself changes a layer: a wake-up for each change would take
  /// as long as the change.
  private static let ownChangesInterval: CInt = 2
  /// Bytes of events, some hundred, that are handled before any program continues.
  private static let urgentBytes = 16 << 10
  /// Milliseconds between two checks whether a layer that a barrier waits for still answers.
  private static let barrierInterval: CInt = 100

  private func run(_ store: NodeStore) {
    LayerAccess.current = .shared
    var nextPoll = TimeSpec.monotonic
    // A predecessor may have had mounts in its own.
    queue.add(roots.ownInnerMounts(store))
    while true {
      // The events read next satisfy the barriers that were there before.
      let (barriers, isStopped, hasUncovered) = state.withLock { state in
        defer { state.barriers = [] }
        return (state.barriers, state.isStopped, state.hasUncovered)
      }
      let needsPolling = roots.needsPolling
      let wasOurs = drain(store)
      // By the clock: in a busy layer there are always events.
      let isDue = nextPoll < TimeSpec.monotonic
      if isDue { nextPoll = TimeSpec.monotonic.advanced(byMilliseconds: Self.pollInterval) }
      // What follows may take longer.
      if !barriers.isEmpty || isStopped || hasUncovered || needsPolling { Thread.setUrgent(false) }
      if !barriers.isEmpty || (isDue && (needsPolling || hasUncovered)) { roots.requestPathChecks(store) }
      if !barriers.isEmpty { queue.add(Invalidation.ofUncovered(in: store)) }
      for barrier in barriers { roots.addBarrier(barrier) }
      // The invalidation queue is closed after this thread has ended.
      if isStopped { return }
      if hasUncovered, isDue { pollUncovered(store) }
      let isWaiting = self.barriers.isWaiting
      if isWaiting { self.barriers.abandonUnresponsive() }
      // The next look must not keep the program from running.
      if wasOurs { ProcessorSplit.leaveAnswering() }
      Thread.setUrgent(true)
      let hasMountTableChanged =
        wasOurs
        ? signal.eventFD.wait(
          or: -1, urgent: mountTable.rawValue, milliseconds: Self.ownChangesInterval)
        : signal.eventFD.wait(
          or: watches.inotify.rawValue, urgent: mountTable.rawValue,
          milliseconds: isWaiting
            ? Self.barrierInterval : hasUncovered || needsPolling ? Self.pollInterval : -1
        )
      if hasMountTableChanged {
        Thread.setUrgent(false)
        queue.add(roots.mountTableChanged(store))
      }
    }
  }

  /// Reads the events that are queued now. Those that come meanwhile are left, since they might never end.
  /// - Returns: whether there were any, and the mount itself has caused them all.
  private func drain(_ store: NodeStore) -> Bool {
    // Before the first is taken from the queue: see `hasHandledAll`.
    isHandling.store(true, ordering: .sequentiallyConsistent)
    defer { isHandling.store(false, ordering: .sequentiallyConsistent) }
    var pending = watches.inotify.pendingBytes
    var wereOurs = pending > 0
    if pending > Self.urgentBytes { Thread.setUrgent(false) }
    while pending > 0 {
      // Only this thread reads the descriptor; reading fails only when the kernel is out of memory.
      let events = (try? watches.inotify.read()) ?? []
      if events.isEmpty { return false }
      for event in events { pending -= event.size }
      let (found, areOurs) = invalidations(for: events, store)
      queue.add(found)
      wereOurs = wereOurs && areOurs
    }
    return wereOurs
  }

  /// - Returns: the invalidations, and whether the mount itself has caused all events.
  private func invalidations(for events: [InotifyEvent], _ store: NodeStore) -> ([Invalidation], Bool) {
    var found: [Invalidation] = []
    var areOurs = true
    var invalidated: Set<FileEvent> = []
    for (index, event) in events.enumerated() {
      if event.mask.contains(.overflow) {
        state.withLock { $0.overflows += 1 }
        store.indexes.removeAll()
        found.append(Invalidation(subject: .subtree(.root)))
        areOurs = false
        continue
      }
      var affected: [WatchOwner] = []
      let isRepeated = !invalidated.insert(FileEvent(event)).inserted
      for owner in watches.owners(of: event.watch) {
        // A file with thousands of names has as many nodes.
        if isRepeated, owner.layer == nil { continue }
        guard let caused = consume(event, of: owner, store) else { continue }
        found += caused
        affected.append(owner)
      }
      areOurs = areOurs && affected.isEmpty
      if event.mask.contains(.movedTo), index > 0, events[index - 1].cookie == event.cookie {
        found += renames(events[index - 1], event, to: affected)
      }
      if event.mask.contains(.ignored) { watches.removeEnded(event.watch) }
    }
    return (found, areOurs)
  }

  /// What an event means to the nodes of a file that is watched itself.
  private struct FileEvent: Hashable {
    let watch: WatchDescriptor
    let isOfContent: Bool

    init(_ event: InotifyEvent) {
      (watch, isOfContent) = (event.watch, !event.mask.isDisjoint(with: .content))
    }
  }

  /// Handles an event of one of its watch's owners, once: those of the mount's own changes are counted.
  /// - Returns: nil if the mount itself has caused the event.
  private func consume(_ event: InotifyEvent, of owner: WatchOwner, _ store: NodeStore) -> [Invalidation]? {
    if let component = owner.pathComponent, let layer = owner.layer {
      if component == WatchOwner.archive {
        let isWritten = !event.mask.isDisjoint(with: [.closeWrite, .attributes])
        roots.requestCheck(isWritten ? .archiveWritten : .archiveModified, of: layer, store)
      } else if roots.concerns(layer, component: component, name: event.name) {
        roots.requestCheck(.path, of: layer, store)
      }
      return []
    }
    guard let layer = owner.layer else {
      if own != nil, store.recordDirectEvent(of: owner.node, isClosing: event.mask.contains(.closeWrite)) {
        queue.add([Invalidation(subject: .file(owner.node), aspects: .attributes)])
        return nil
      }
      let aspects: Invalidation.Aspects = event.mask.isDisjoint(with: .content) ? .attributes : .content
      return [Invalidation(subject: .file(owner.node), aspects: aspects)]
    }
    // Before anything else: all events of the names count, those of the mount's own changes, too.
    store.indexes.record(event, in: owner.node, layer: layer, countsOwnAttributes: own == nil)
    if owner.node == .root, let fault = LayerRoot.fault(event.mask) {
      faults[layer] = fault
      // The event may be late, and another directory be the root by now.
      roots.requestCheck(.path, of: layer, store)
      return [Invalidation(subject: .subtree(.root))]
    }
    if layer == 0, let own {
      switch own.consume(event, in: owner.node, store) {
      case .others: break
      case .ours: return nil
      case .oursAfterOthers(let invalidations): return invalidations
      case .direct(let invalidations):
        queue.add(invalidations)
        return nil
      }
    }
    let change = LayerEvent(directory: owner.node, layer: layer, name: event.name, mask: event.mask)
    return store.table.withLock { LayerEventMapper.invalidations(for: change, in: &$0) }
  }

  /// The renames of a file that a pair of IN_MOVED_FROM and IN_MOVED_TO reports. A watched directory that sees
  /// only one of the two takes it for a deletion or a creation.
  /// - Parameter affected: the owners for which the mount itself has not caused the second event.
  private func renames(
    _ from: InotifyEvent, _ to: InotifyEvent, to affected: [WatchOwner]
  ) -> [Invalidation] {
    if !from.mask.contains(.movedFrom) || to.mask.contains(.isDirectory) { return [] }
    var found: [Invalidation] = []
    let targets = affected.filter { $0.pathComponent == nil && $0.layer != nil }
    for source in watches.owners(of: from.watch) where source.pathComponent == nil {
      for target in targets where target.layer == source.layer {
        let key = EntryKey(parent: target.node, name: to.name)
        found.append(
          Invalidation(subject: .renamed(EntryKey(parent: source.node, name: from.name), to: key)))
      }
    }
    return found
  }

  private func pollUncovered(_ store: NodeStore) {
    // Before the look, so that what becomes uncovered meanwhile is kept.
    state.withLock { $0.hasUncovered = false }
    let uncovered = store.pollUncovered()
    queue.add(uncovered.retried.map { Invalidation(subject: .parts($0)) })
    queue.add(uncovered.formerlyCovered.map { Invalidation(subject: .uncovered($0)) })
    queue.add(uncovered.listed.map { Invalidation(subject: .listing($0)) })
    if uncovered.exist || !faults.isEmpty { state.withLock { $0.hasUncovered = true } }
  }
}

extension LayerWatcher: NodeWatcher {
  func watch(_ part: LayerDirectory, for node: NodeID) throws(Errno) -> WatchDescriptor? {
    try watches.watch(part, for: node)
  }

  func watchFile(_ node: NodeID, at path: CName, follows: Bool) throws(Errno) {
    try watches.watchFile(node, at: path, follows: follows)
  }

  func watchesFile(_ node: NodeID) -> Bool { watches.hasFileWatch(node) }

  func unwatch(_ node: NodeID, except kept: [WatchDescriptor]) {
    watches.removeWatches(of: node, except: kept)
  }

  func unwatchFile(_ node: NodeID) { watches.removeFileWatch(node) }

  func fault(of layer: Int) -> String? { faults[layer] }

  /// An event leaves the queue only while `isHandling` is set, so the queue is looked at first.
  var hasHandledAll: Bool {
    !watches.inotify.hasPending && !isHandling.load(ordering: .sequentiallyConsistent)
  }

  func directoryIsUncovered() {
    let isFirst = state.withLock { state in
      defer { state.hasUncovered = true }
      return !state.hasUncovered
    }
    if isFirst { signal.send() }
  }

  func partsMayHaveChanged(of node: NodeID) { queue.add([Invalidation(subject: .parts(node))]) }

  func directoryWasRenumbered(_ node: NodeID) { queue.add([Invalidation(subject: .subtree(node))]) }

  func spellingWasEvicted(_ key: EntryKey) { queue.add([Invalidation(subject: .spelling(key))]) }
}
