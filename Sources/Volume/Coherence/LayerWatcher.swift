import Fuse
import Layers
import Posix

/// Keeps the kernel's caches true: one thread hears of changes in the layers, another, the invalidator, takes
/// back from the kernel what they made untrue.
///
/// The order that makes it right: a directory is watched before it is read; a change alters our own state
/// first, and the kernel is told afterwards, by a thread that holds no lock. The kernel makes it wait for the
/// requests in flight in that directory, whose answers may be older than the change, and so takes them back.
final class LayerWatcher: Sendable {
  let watches: WatchTable
  let queue: InvalidationQueue
  private let eventFD: EventFD
  private let mounts: MountTableWatch
  /// Where the layers are, by their places in the stack.
  let places: [LayerRootMonitor]
  /// The layers that are archives, by their places in the stack.
  let archives: [Int: ArchiveLayer]
  /// Where archives are read anew; nil without archives.
  let archiveErrands: SerialWorker?
  private let state = Locked(State())

  private struct State {
    /// Archives that are about to be read anew.
    var waitingArchives: Set<Int> = []
    /// Called once the events that are there have been read.
    var barriers: [@Sendable () -> Void] = []
    var isOver = false
    var thread: ThreadHandle?
    /// What is wrong with layers as a whole, by their places.
    var faults: [Int: String] = [:]
    /// The mounts that have taken the place of those that held layers at the beginning.
    var mounts: [Int: MountTableEntry] = [:]
    /// The mounts inside layers that are seen there, by the layers' places.
    var innerMounts: [Int: Set<Int>] = [:]
    /// Whether the layers' paths are to be looked at now and then.
    var looksAtPlaces = false
    var overflows = 0
    /// Whether something is served with short timeouts.
    var hasFallbacks = false
  }

  init(_ layers: [Layer], _ queue: InvalidationQueue) throws(Errno) {
    self.queue = queue
    var archives: [Int: ArchiveLayer] = [:]
    for (place, layer) in layers.enumerated() { archives[place] = layer.archive }
    self.archives = archives
    archiveErrands = archives.isEmpty ? nil : SerialWorker(name: "archives")
    places = layers.map { LayerRootMonitor($0) }
    mounts = try MountTableWatch()
    watches = try WatchTable()
    eventFD = try EventFD()
    // Now, before our own mount may lie on the way.
    watchPlaces()
  }

  /// Starts the watcher. From now on requests may be answered.
  func start(_ volume: Volume) throws(Errno) {
    note(innerMountsIn: MountTableEntry.all())
    try archiveErrands?.start()
    let watcher = ThreadHandle(try Thread(name: "watcher") { self.watch(volume) })
    state.withLock { $0.thread = watcher }
  }

  /// Ends the watcher, once it has passed on what it heard.
  func stop() {
    let thread = state.withLock { state in
      state.isOver = true
      return state.thread
    }
    eventFD.signal()
    thread?.join()
    archiveErrands?.stop()
  }

  /// Has a function called when every change finished by now is visible through the mount.
  /// - Returns: false when it will not be, since the mount ends.
  func barrier(_ reached: @escaping @Sendable () -> Void) -> Bool {
    let isOver = state.withLock { state in
      if !state.isOver { state.barriers.append(reached) }
      return state.isOver
    }
    if !isOver { eventFD.signal() }
    return !isOver
  }

  /// What is wrong with a layer as a whole; nil if nothing is.
  func fault(of layer: Int) -> String? { state.withLock { $0.faults[layer] } }

  /// How often events were lost.
  var overflows: Int { state.withLock { $0.overflows } }

  /// Notes what is wrong with a layer as a whole.
  func note(fault: String?, of layer: Int) { state.withLock { $0.faults[layer] = fault } }

  /// The mount that holds a layer; nil if there was no telling.
  func mount(of layer: Int) -> MountTableEntry? { state.withLock { $0.mounts[layer] } ?? places[layer].mount }

  /// Notes which mount holds a layer from now on.
  func note(mount: MountTableEntry, of layer: Int) { state.withLock { $0.mounts[layer] = mount } }

  /// Notes which mounts are inside a layer.
  /// - Returns: whether others were before.
  func note(innerMounts: Set<Int>, of layer: Int) -> Bool {
    state.withLock { $0.innerMounts.updateValue(innerMounts, forKey: layer) != innerMounts }
  }

  /// Notes that an archive is about to be read anew, or that this begins.
  /// - Returns: whether that was not known.
  func note(archive: Int, isWaiting: Bool) -> Bool {
    state.withLock { state in
      isWaiting
        ? state.waitingArchives.insert(archive).inserted : state.waitingArchives.remove(archive) != nil
    }
  }

  /// Notes whether the layers' paths are to be looked at now and then.
  func note(looksAtPlaces: Bool) { state.withLock { $0.looksAtPlaces = looksAtPlaces } }

  /// Notes that something is served with short timeouts, and has to be looked after.
  func noteFallback() {
    let isNew = state.withLock { state in
      defer { state.hasFallbacks = true }
      return !state.hasFallbacks
    }
    if isNew { eventFD.signal() }
  }

  // MARK: - The watcher's thread

  /// Milliseconds between looks at what cannot be watched.
  private static let lookInterval: CInt = 500

  private func watch(_ volume: Volume) {
    var nextLook = TimeSpec.monotonic
    while true {
      // The barriers that were there before the events were read are those that the events satisfy.
      let (barriers, isOver, hasFallbacks, looksAtPlaces) = state.withLock { state in
        defer { state.barriers = [] }
        return (state.barriers, state.isOver, state.hasFallbacks, state.looksAtPlaces)
      }
      drain(volume)
      // By the clock: in a busy layer there would always be something else to do.
      let isTime = nextLook < TimeSpec.monotonic
      if isTime { nextLook = TimeSpec.monotonic.advanced(byMilliseconds: Self.lookInterval) }
      if !barriers.isEmpty || (isTime && (looksAtPlaces || hasFallbacks)) { queue.add(lookAtPlaces(volume)) }
      // The queue ends after us.
      for barrier in barriers { pass(barrier) }
      if isOver { return }
      if hasFallbacks, isTime { lookAfterFallbacks(volume) }
      let haveMountsChanged = eventFD.wait(
        or: watches.inotify.rawValue, urgent: mounts.rawValue,
        milliseconds: hasFallbacks || looksAtPlaces ? Self.lookInterval : -1)
      if haveMountsChanged { noteMounts(volume) }
    }
  }

  /// Reads the events that are there now; those that come meanwhile wait for the next time, since they might
  /// never end.
  private func drain(_ volume: Volume) {
    var pending = watches.inotify.pendingBytes
    while pending > 0 {
      // The descriptor is ours alone; reading it cannot fail but for want of memory in the kernel.
      let events = (try? watches.inotify.read()) ?? []
      if events.isEmpty { return }
      for event in events { pending -= event.size }
      queue.add(invalidations(for: events, volume))
    }
  }

  private func invalidations(for events: [InotifyEvent], _ volume: Volume) -> [Invalidation] {
    var found: [Invalidation] = []
    for (place, event) in events.enumerated() {
      if event.mask.contains(.overflow) {
        state.withLock { $0.overflows += 1 }
        found.append(Invalidation(subject: .subtree(.root)))
        continue
      }
      for user in watches.owners(of: event.watch) {
        found += invalidations(for: event, user, volume)
      }
      if event.mask.contains(.movedTo), place > 0, events[place - 1].cookie == event.cookie {
        found += renamings(events[place - 1], event)
      }
      if event.mask.contains(.ignored) { watches.removeEnded(event.watch) }
    }
    return found
  }

  private func invalidations(for event: InotifyEvent, _ user: WatchOwner, _ volume: Volume) -> [Invalidation]
  {
    if let name = user.pathComponent, let layer = user.layer {
      if name == WatchOwner.archive { return archiveChanged(layer, event.mask, volume) }
      return event.name == places[layer].names[Int(name)] ? lookAtPlaces(volume) : []
    }
    guard let layer = user.layer else {
      let aspects: Invalidation.Aspects = event.mask.isDisjoint(with: .content) ? .attributes : .content
      return [Invalidation(subject: .file(user.node), aspects: aspects)]
    }
    if user.node == .root, let fault = LayerRootMonitor.fault(event.mask) {
      note(fault: fault, of: layer)
      return [Invalidation(subject: .subtree(.root))]
    }
    let change = LayerChange(directory: user.node, layer: layer, name: event.name, mask: event.mask)
    return volume.table.withLock { ChangeMapper.invalidations(for: change, in: &$0) }
  }

  /// A file that went from one name to another. The kernel tells both names one after the other; whoever is told
  /// of only one of them takes that for a file that comes or goes.
  private func renamings(_ from: InotifyEvent, _ to: InotifyEvent) -> [Invalidation] {
    if !from.mask.contains(.movedFrom) || to.mask.contains(.isDirectory) { return [] }
    var found: [Invalidation] = []
    let targets = watches.owners(of: to.watch).filter { $0.pathComponent == nil && $0.layer != nil }
    for source in watches.owners(of: from.watch) where source.pathComponent == nil {
      for target in targets where target.layer == source.layer {
        let place = EntryKey(parent: target.node, name: to.name)
        found.append(
          Invalidation(subject: .renamed(EntryKey(parent: source.node, name: from.name), to: place)))
      }
    }
    return found
  }

  /// Twice a second: what cannot be watched is looked at anew.
  private func lookAfterFallbacks(_ volume: Volume) {
    // Before the look, so that what is noted meanwhile is not forgotten.
    state.withLock { $0.hasFallbacks = false }
    let (invalidations, hasFallbacks) = volume.fallbacks()
    queue.add(invalidations)
    state.withLock { if hasFallbacks || !$0.faults.isEmpty { $0.hasFallbacks = true } }
  }
}
