import Fuse
import Layers
import Posix

/// Invalidates the kernel's caches, on a thread of its own.
///
/// The thread holds no lock while it notifies the kernel and answers no requests, since the kernel blocks a notification
/// until the requests in flight in that directory are answered. ENOENT from a notification means that the kernel
/// had nothing cached, and is ignored.
struct Invalidator {
  let store: NodeStore
  let queue: InvalidationQueue
  let kernel: any KernelNotifier
  let counters: InvalidationCounters
  /// nil with `announce=off`.
  let observer: (any EventObserver)?
  /// Opened when nothing that a predecessor has had the kernel cache remains to be compared.
  private let isCompared: Latch
  typealias WhenStored = @Sendable (@escaping @Sendable () -> Void) -> Void
  /// Calls a function once all prefetched content has been stored that is being stored now.
  private let whenStored: WhenStored
  /// nil if it is not known what a predecessor has left unread.
  let unreadEvents: UnreadEvents?
  let inheritedWalk = InheritedWalk()
  /// The directories that threads of layers have yet to resolve again.
  private let refreshes = Locked<Set<NodeID>>([])

  init(
    store: NodeStore, queue: InvalidationQueue, kernel: any KernelNotifier, counters: InvalidationCounters,
    observer: (any EventObserver)?, isCompared: Latch = Latch(), unreadEvents: UnreadEvents? = nil,
    whenStored: @escaping WhenStored = { $0() }
  ) {
    self.store = store
    self.queue = queue
    self.kernel = kernel
    self.counters = counters
    self.observer = observer
    self.isCompared = isCompared
    self.unreadEvents = unreadEvents
    self.whenStored = whenStored
  }

  /// A name that no entry has: expiring it only waits for the requests in flight in the directory.
  static let noName: [UInt8] = [UInt8(ascii: ".")]

  /// What its thread does next.
  enum Step {
    case work(InvalidationQueue.Work)
    /// After the work that was taken at once.
    case flush
  }

  /// The most invalidations that are made before any program continues; more of them take longer.
  private static let mostUrgent = 32
  /// The size of the largest file whose pages are dropped before any program continues.
  private static let mostUrgentBytes: UInt64 = 1 << 20

  /// The loop of its thread. An invalidation for which that waits for a layer that does not answer is made again.
  func loop(_ watchdog: LayerWatchdog) -> FailoverLoop<Step> {
    FailoverLoop(
      name: "invalidator", repeats: true, watchdog,
      take: { [queue] in
        Thread.setUrgent(true)
        let work = queue.take()
        if (work?.count ?? 0) > Self.mostUrgent { Thread.setUrgent(false) }
        return work.map { $0.map { .work($0) } + [.flush] }
      },
      handle: { step in
        switch step {
        case .work(.invalidate(let invalidation)): invalidate(invalidation)
        case .work(.barrier(let reached)): whenStored(reached)
        case .flush: observer?.flush()
        }
      })
  }

  func invalidate(_ invalidation: Invalidation) {
    if !invalidation.subject.isQuick { Thread.setUrgent(false) }
    switch invalidation.subject {
    case .name(let directory, let name, let layer):
      invalidate(name, in: directory, layer, invalidation.aspects)
      observe(name, in: directory, [layer], invalidation.aspects)
    case .listing(let directory): invalidateListing(of: directory)
    case .file(let file): invalidate(file, invalidation.aspects)
    case .parts(let directory):
      refresh(directory, isForced: false)
      if invalidation.aspects.contains(.attributes) { observer?.record(.directory(directory)) }
    case .subtree(let directory): refresh(directory, isForced: true)
    case .inherited: continueWalk()
    case .formerLayers: InheritedCaches(self).invalidateChangedLayers(before: inheritedWalk)
    case .uncovered(let directory): invalidateUncovered(directory)
    case .uncoveredFile(let file):
      store.retryWatch(file)
      expireName(of: file)
      counters.contents.add(1)
      try? kernel.invalidateContent(of: file)
    case .spelling(let key): expireSpelling(key.name, in: key.parent)
    case .renamed(let source, let target):
      observer?.record(.renaming(shownKey(source), to: shownKey(target)))
    }
  }

  /// Compares some directories with what a predecessor has had the kernel cache; the rest comes behind what is queued now.
  private func continueWalk() {
    if InheritedCaches(self).compareNext(of: inheritedWalk) || queue.isClosed {
      isCompared.open()
    } else {
      queue.add([Invalidation(subject: .inherited)])
    }
  }

  private func invalidate(
    _ name: [UInt8], in directory: NodeID, _ layer: Int, _ aspects: Invalidation.Aspects
  ) {
    if aspects.contains(.content) { store.markTime(of: name, in: directory, isContent: true) }
    // The name first: this waits for lookups in flight, and the nodes that they create are known afterwards.
    expire(name, in: directory)
    for node in store.files(named: name, in: directory, of: layer) { invalidate(node, aspects) }
    // A lookup in flight may have resolved a directory before the change.
    for child in store.childDirectories(named: name, in: directory) {
      Thread.setUrgent(false)
      refresh(child, isForced: false)
    }
    // No event reported what was written to the file by its new name.
    if aspects.contains(.link) {
      for file in store.unwatchedLinks(named: name, in: directory, of: layer) { invalidate(file, .content) }
    }
    if aspects.isDisjoint(with: [.added, .removed]) { return }
    if observer == nil {
      releaseFormerFile(name, in: directory)
    } else {
      dropFiles(lastNamed: name, in: directory)
    }
  }

  /// Makes the kernel drop the dentries of files that were deleted or replaced.
  ///
  /// The kernel looks an expired name up again without the directory's lock, for which the expiry would wait. Where a
  /// program takes a reply from before the change after the expiry, the former file would have the name again. The
  /// announcer drops such dentries, too, but later.
  func dropFiles(lastNamed name: [UInt8], in directory: NodeID) {
    for file in store.deletedFiles(lastNamed: name, in: directory) {
      for spelling in spellings(of: name, in: directory) {
        if observer == nil {
          try? kernel.invalidateEntry(spelling, in: directory)
        } else {
          try? kernel.deleteEntry(spelling, in: directory, of: file)
        }
      }
    }
  }

  /// Makes the kernel forget a file that has lost its name, unless a program has it open: it would keep the dentry,
  /// though expired, until memory is short, and the daemon the file's descriptor and thus its space. The announcer
  /// does this itself, since it needs the dentry for its event.
  private func releaseFormerFile(_ name: [UInt8], in directory: NodeID) {
    guard store.isLeftToFormerFile(name, in: directory) else { return }
    for spelling in spellings(of: name, in: directory) {
      try? kernel.invalidateEntry(spelling, in: directory)
    }
  }

  private func spellings(of name: [UInt8], in directory: NodeID) -> Set<[UInt8]> {
    store.otherSpellings(of: name, in: directory).union([name])
  }

  func invalidate(_ file: NodeID, _ aspects: Invalidation.Aspects) {
    // No event reported what happened to a file between the loss of its name and the watch on the file itself.
    let wasUnwatched = store.watchDetached(file)
    if aspects.contains(.content) || wasUnwatched {
      if store.reportedSize(of: file) > Self.mostUrgentBytes { Thread.setUrgent(false) }
      counters.contents.add(1)
      try? kernel.invalidateContent(of: file)
      store.forgetFingerprint(of: file)
    } else if aspects.contains(.attributes) {
      counters.attributes.add(1)
      try? kernel.invalidateAttributes(of: file)
    }
  }

  func invalidateListing(of directory: NodeID) {
    // A READDIR in flight would still add to the kernel's cache what it read before.
    expire(Self.noName, in: directory)
    counters.contents.add(1)
    try? kernel.invalidateContent(of: directory)
  }

  /// Makes the kernel look a name up again, in any spelling.
  func expire(_ name: [UInt8], in directory: NodeID) {
    store.markTime(of: name, in: directory)
    // This waits for lookups in flight, and the spellings that they find are known afterwards.
    expireSpelling(name, in: directory)
    for other in store.otherSpellings(of: name, in: directory) { expireSpelling(other, in: directory) }
  }

  private func expireSpelling(_ name: [UInt8], in directory: NodeID) {
    counters.entries.add(1)
    try? kernel.expireEntry(name, in: directory)
  }

  // MARK: - What is not covered

  /// Invalidates all that the kernel has cached of a directory, without asking the layers. Where a layer does not
  /// answer, a lookup may be in flight for which this would wait; only the files of the other layers are invalidated.
  private func invalidateUncovered(_ directory: NodeID) {
    let unresponsive = store.unresponsiveLayers
    guard let location = store.location(of: directory, without: unresponsive) else { return }
    if location.answers {
      // Waits for lookups in flight, of the directory itself and in it.
      if location.parentAnswers, !location.name.isEmpty { expire(location.name, in: location.parent) }
      expire(Self.noName, in: directory)
      let names = store.knownNames(in: directory).union(store.takeMissingNames(in: directory))
      for name in names.union(store.namesWithStaleNegatives(in: directory)) { expire(name, in: directory) }
      for file in store.filesLinked(into: directory) { invalidate(file, .content) }
    }
    counters.contents.add(1)
    try? kernel.invalidateContent(of: directory)
    for file in store.files(in: directory, without: unresponsive) {
      counters.contents.add(1)
      try? kernel.invalidateContent(of: file)
    }
  }

  private func expireName(of file: NodeID) {
    if let key = store.nameKey(of: file) { expire(key.name, in: key.parent) }
  }

  // MARK: - Parts of directories

  /// Resolves a directory again, and those below it down to where nothing changed. Iterative, since a tree may be
  /// deeper than the thread's stack.
  /// - Parameter isBelowChange: whether the directory above has other parts by now.
  func refresh(_ directory: NodeID, isForced: Bool, isBelowChange: Bool = false) {
    var pending = [(directory, isForced, isBelowChange)]
    while let (next, isForced, isBelowChange) = pending.popLast() {
      if !isForced, store.isInherited(next) {
        InheritedCaches(self).comparePath(to: next)
        continue
      }
      let change: NodeStore.PartsChange?
      do throws(Errno) {
        change = try store.refreshParts(of: next, isForced: isForced, readsWhiteouts: observer != nil)
      } catch {
        refreshOnLayerThread(next)
        continue
      }
      guard let change else {
        // Other catalogs may contribute to its tables.
        if isBelowChange { for name in store.knownTables(in: next) { invalidateTables(name, in: next) } }
        continue
      }
      invalidate(change, of: next)
      if let name = change.lostName { releaseName(name, of: next, isDeleted: change.isDeleted) }
      for child in store.childDirectories(of: next) { pending.append((child, change.isForced, true)) }
    }
  }

  /// Invalidates the tables to which some names' catalogs contribute.
  func invalidateTables(ofCatalogs names: Set<[UInt8]>, in directory: NodeID) {
    guard store.stack.tables != nil else { return }
    let tables = names.compactMap { TableName.table(ofCatalog: $0, foldsNames: store.stack.foldsNames) }
    if tables.isEmpty { return }
    for folder in store.languageFolders(in: directory) {
      for name in tables { invalidateTables(name, in: folder) }
    }
  }

  private func invalidateTables(_ name: [UInt8], in directory: NodeID) {
    invalidate(Invalidation(tables: name, in: directory))
  }

  /// Makes the kernel look up a name that another directory has by now, or none, and tells watchers of a directory that it
  /// was deleted: IN_DELETE_SELF.
  private func releaseName(_ key: EntryKey, of directory: NodeID, isDeleted: Bool) {
    // A lookup in flight may have given the name to it.
    expire(key.name, in: key.parent)
    // The notification would detach another directory of this name from its path (`Replayer.deleteFormerEntries`).
    guard isDeleted, observer != nil, store.childDirectory(named: key.name, in: key.parent) == nil else {
      return
    }
    try? kernel.deleteEntry(key.name, in: key.parent, of: directory)
  }

  /// Has a thread of the layer that was not asked resolve a directory again, unless the layer does not answer: then
  /// nothing can be learnt.
  private func refreshOnLayerThread(_ directory: NodeID) {
    guard let layer = LayerAccess.deferredLayer, store.stack[layer].gate.unresponsiveSince == nil,
      refreshes.withLock({ $0.insert(directory).inserted })
    else { return }
    let isQueued = store.stack.runDeferred {
      refreshes.withLock { _ = $0.remove(directory) }
      // Perhaps it is; what else was asked for meanwhile is not known.
      refresh(directory, isForced: false, isBelowChange: true)
      observer?.flush()
    }
    if !isQueued { refreshes.withLock { _ = $0.remove(directory) } }
  }

  /// A part that cannot be read shows no names either.
  static func names(of part: LayerDirectory) -> [[UInt8]] { (try? part.affectedNames()) ?? [] }

  private func invalidate(_ change: NodeStore.PartsChange, of directory: NodeID) {
    // Requests in flight were still answered from the former parts.
    expire(Self.noName, in: directory)
    let arrived = change.arrived.map { ($0.layer, Self.names(of: $0)) }
    // Before anything about the former parts is dropped.
    if !change.isForced { observe(change, arrived, in: directory) }
    var names = store.knownNames(in: directory)
    for (_, ofPart) in arrived { names.formUnion(ofPart) }
    for part in change.revealedParts { names.formUnion(Self.names(of: part)) }
    // A layer that must not be waited for has no names here.
    if change.isForced { names.formUnion(store.takeMissingNames(in: directory)) }
    for name in names { expire(name, in: directory) }
    for file in store.detachPinned(in: directory, of: change.departed) { invalidate(file, .attributes) }
    if change.isForced {
      for file in store.files(in: directory) { invalidate(file, .content) }
    }
    invalidateListing(of: directory)
    observer?.record(.directory(directory))
  }

  // MARK: - Observed changes

  /// Observes all names in added parts: those that no program has looked up appear in listings too.
  private func observe(
    _ change: NodeStore.PartsChange, _ arrived: [(layer: Int, names: [[UInt8]])], in directory: NodeID
  ) {
    if observer == nil { return }
    for (layer, names) in arrived {
      for name in names { observe(name, in: directory, [layer], .added) }
    }
    for name in change.revealed { observe(name, in: directory, change.departed, .revealed) }
    for (name, aspects) in departedNames(from: directory, of: change.departed) {
      observe(name, in: directory, change.departed, aspects)
    }
  }

  private func observe(
    _ name: [UInt8], in directory: NodeID, _ layers: Set<Int>, _ aspects: Invalidation.Aspects
  ) {
    guard let observer, !aspects.isDisjoint(with: .announced) else { return }
    let key = shownKey(EntryKey(parent: directory, name: name))
    observer.record(.name(key, NameChange(aspects: aspects, layers: layers)))
  }

  private func shownKey(_ key: EntryKey) -> EntryKey {
    EntryKey(parent: key.parent, name: store.shownName(of: key.name, in: key.parent))
  }

  /// The names that the removed parts of some layers had, as far as the kernel knows them.
  private func departedNames(
    from directory: NodeID, of layers: Set<Int>
  ) -> [([UInt8], Invalidation.Aspects)] {
    guard !layers.isEmpty, let merged = try? store.merged(of: directory) else { return [] }
    return store.knownEntries(in: directory, of: layers).compactMap { name, isDirectory in
      if !isDirectory { return (name, [.removed, .knownFile]) }
      // A directory that other layers still have has other parts now.
      let exists = (try? withCName(name) { name throws(Errno) in try merged.lookup(name) != nil }) ?? true
      return exists ? nil : (name, [.removed, .removedDirectory, .knownDirectory])
    }
  }
}
