import Fuse
import Layers
import Posix
import RemoteFiles

/// Follows the layers' roots: paths that lead to another directory, file systems that are unmounted, mounts that
/// appear inside a layer.
///
/// What calls a layer runs on the thread of `checks`; the watcher thread only requests it.
final class LayerRootMonitor: Sendable {
  private let layers: [Layer]
  let roots: [LayerRoot]
  private let mountPoint: [UInt8]
  private let watches: WatchTable
  private let faults: LayerFaults
  private let archives: ArchiveMonitor
  private let queue: InvalidationQueue
  private let checks: RootCheckQueue
  private let signal: WatcherSignal
  private let state = Locked(State())

  private struct State {
    /// The mounts that replaced those that held layers at first, by layer.
    var mounts: [Int: MountTableEntry] = [:]
    /// The ids of the mounts that are visible inside layers, by layer.
    var innerMounts: [Int: Set<Int>] = [:]
    /// The layers whose path could not be watched.
    var unwatched: Set<Int> = []
  }

  /// Watches the roots' paths at once, before this file system may be mounted over one of them.
  init(
    _ layers: [Layer], mountPoint: [UInt8], _ watches: WatchTable, _ faults: LayerFaults,
    _ archives: ArchiveMonitor, _ queue: InvalidationQueue, _ barriers: LayerBarriers, _ signal: WatcherSignal
  ) {
    checks = RootCheckQueue(barriers)
    self.signal = signal
    self.layers = layers
    self.mountPoint = mountPoint
    self.watches = watches
    self.faults = faults
    self.archives = archives
    self.queue = queue
    let mounts = MountTableEntry.all()
    roots = layers.map { LayerRoot($0, mountPoint: mountPoint, mounts) }
    for layer in roots.indices { watchPath(of: layer) }
    archives.watchAll()
  }

  /// - Throws: EAGAIN.
  func start(_ watchdog: LayerWatchdog) throws(Errno) {
    recordInnerMounts()
    try checks.start(watchdog)
  }

  /// Ends the thread after the requested checks.
  func stop() { checks.stop() }

  /// Whether paths could not be watched, so that they have to be checked periodically.
  var needsPolling: Bool { state.withLock { !$0.unwatched.isEmpty } }

  /// Watches the directories on a root's path, since a component of a path can come to name something else.
  private func watchPath(of layer: Int) {
    var isWatched = true
    for index in roots[layer].components.indices {
      if (try? watches.watchPathComponent(roots[layer].parent(ofComponent: index), layer, index)) == nil {
        isWatched = false
      }
    }
    state.withLock { state in
      if isWatched { state.unwatched.remove(layer) } else { state.unwatched.insert(layer) }
    }
    // It is polled from now on.
    if !isWatched { signal.send() }
  }

  // MARK: - Requests

  /// Has archives on servers checked after each answer to the question whether they were changed.
  func followServers(_ store: NodeStore) {
    for (layer, root) in layers.enumerated() {
      root.archive?.remote?.follow { [weak self, weak store] in
        if let self, let store { requestCheck(.archiveWritten, of: layer, store) }
      }
    }
  }

  /// Queues a check of a layer, whose invalidations are queued with it.
  func requestCheck(_ check: RootCheck, of layer: Int, _ store: NodeStore) {
    checks.add(check, of: layers[layer].gate) { [self] check in run(check, of: layer, store) }
  }

  /// Queues checks of all paths.
  func requestPathChecks(_ store: NodeStore) {
    for layer in roots.indices { requestCheck(.path, of: layer, store) }
  }

  /// Calls a function once the invalidations of all requested checks are handled.
  func addBarrier(_ reached: @escaping @Sendable () -> Void) {
    checks.afterChecks { [archives] in archives.addBarrier(reached) }
  }

  private func run(_ check: RootCheck, of layer: Int, _ store: NodeStore) {
    var hasChanged = false
    if check.contains(.mount), adoptMount(layer, store) { hasChanged = true }
    if !check.isDisjoint(with: [.archiveModified, .archiveWritten]) {
      archives.checkContent(layer, isComplete: check.contains(.archiveWritten), store)
    }
    if check.contains(.path), checkPath(of: layer, store) { hasChanged = true }
    if hasChanged { queue.add([Invalidation(subject: .subtree(.root))]) }
  }

  // MARK: - Paths

  /// Whether an event of a watched path concerns the component that is watched for.
  func concerns(_ layer: Int, component: UInt8, name: [UInt8]) -> Bool {
    name == roots[layer].components[Int(component)]
  }

  /// Checks whether a root's path still leads to the directory that the layer has open, and reopens it if not:
  /// build tools remove their output directories and make them again.
  /// - Returns: as `check`.
  private func checkPath(of layer: Int, _ store: NodeStore) -> Bool {
    var hasChanged = false
    // Again with the new watches, since the path may have changed before they were set; bounded.
    for round in 0..<4 {
      if check(layer, store) {
        hasChanged = true
      } else if round > 0 || faults[layer] == nil {
        break
      }
      // Also where the path leads nowhere as before: another directory may be on the way, in which nothing is watched yet.
      watches.removePathWatches(of: layer)
      watchPath(of: layer)
      archives.watchAgain(layer)
    }
    return hasChanged
  }

  /// - Returns: whether the layer's root or its fault is another one now.
  private func check(_ layer: Int, _ store: NodeStore) -> Bool {
    if archives.contains(layer) { return archives.check(layer, mount: mount(of: layer), store) }
    guard let mount = mount(of: layer), case .directory(let directory) = layers[layer] else { return false }
    var (fault, wasReopened, isAbsent): (String?, Bool, Bool) = (nil, false, false)
    do throws(Errno) {
      switch try directory.reopen(mount: mount.id) {
      case .unchanged: break
      case .replaced: wasReopened = true
      // Possibly our own mount. The mount table says whether the layer's is gone.
      case .onOtherMount: return false
      }
    } catch {
      // A layer that may not answer says nothing. Linux before 5.8 does not report mount ids.
      if error == .deferred || error == .noFunction { return false }
      let isDeleted = (try? directory.ownRoot.attributes().links) == 0
      fault = isDeleted ? LayerRoot.deleted : LayerRoot.movedAway
      isAbsent = Self.leadsNowhere(error) && mayBeAbsent(layer)
      if isAbsent { fault = LayerRoot.absent }
    }
    let hasComeOrGone = directory.setAbsent(isAbsent)
    if !wasReopened, !hasComeOrGone, fault == faults[layer] { return false }
    faults[layer] = fault
    return true
  }

  private static func leadsNowhere(_ error: Errno) -> Bool {
    [.noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels].contains(error)
  }

  /// MAIN, and the layer that takes changes, go on with the directory that is open.
  private func mayBeAbsent(_ layer: Int) -> Bool {
    layer < layers.count - 1 && layers[layer].folder?.isWritable == false
  }

  // MARK: - Mounts

  private func mount(of layer: Int) -> MountTableEntry? {
    state.withLock { $0.mounts[layer] } ?? roots[layer].mount
  }

  /// Handles a change of the mount table. IN_UNMOUNT does not come while the layer's descriptor keeps the file
  /// system in use.
  func mountTableChanged(_ store: NodeStore) -> [Invalidation] {
    let mounts = MountTableEntry.all()
    var hasChanged = recordInnerMounts(mounts)
    for layer in roots.indices {
      guard let mount = mount(of: layer) else { continue }
      // A mount id can be reused.
      let exists = mounts.contains { $0.id == mount.id && $0.device == mount.device }
      if faults[layer] == nil, !exists {
        faults[layer] = LayerRoot.unmounted
        hasChanged = true
      }
      if faults[layer] == LayerRoot.unmounted { requestCheck(.mount, of: layer, store) }
    }
    return (hasChanged ? [Invalidation(subject: .subtree(.root))] : []) + ownInnerMounts(store, mounts)
  }

  /// Tells the store which mounts are inside this one, where case does not count.
  /// - Returns: the invalidations of the spellings that lead past them.
  func ownInnerMounts(
    _ store: NodeStore, _ mounts: [MountTableEntry] = MountTableEntry.all()
  ) -> [Invalidation] {
    if store.spellings == nil || mountPoint.isEmpty { return [] }
    return store.setInnerMounts(InnerMounts.paths(in: mountPoint, mounts)).map {
      Invalidation(subject: .spelling($0))
    }
  }

  /// Reopens a layer whose file system was unmounted on what is mounted there now, such as the same disk again.
  private func adoptMount(_ layer: Int, _ store: NodeStore) -> Bool {
    guard faults[layer] == LayerRoot.unmounted, let entry = MountTableEntry.containing(roots[layer].path),
      entry.mountPoint == roots[layer].mount?.mountPoint,
      entry.mountPoint != mountPoint
    else { return false }
    if case .directory(let directory) = layers[layer] {
      guard let check = try? directory.reopen(mount: entry.id), check != .onOtherMount else { return false }
    }
    state.withLock { $0.mounts[layer] = entry }
    faults[layer] = nil
    _ = archives.check(layer, mount: entry, store)
    return true
  }

  /// Records the mounts inside layers that are not private clones, since inotify does not report a mount.
  /// - Returns: whether they have changed.
  @discardableResult
  private func recordInnerMounts(_ mounts: [MountTableEntry] = MountTableEntry.all()) -> Bool {
    var hasChanged = false
    for (layer, root) in roots.enumerated() where !root.isPrivateClone {
      let prefix = root.path + [UInt8(ascii: "/")]
      let ids = Set(mounts.filter { $0.mountPoint.starts(with: prefix) }.map(\.id))
      if state.withLock({ $0.innerMounts.updateValue(ids, forKey: layer) }) != ids { hasChanged = true }
    }
    return hasChanged
  }
}
