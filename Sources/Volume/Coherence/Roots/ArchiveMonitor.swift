import Fuse
import Glibc
import Layers
import Posix

/// Reloads the layers that are archives when their files change. Reading a large index takes seconds, so a worker
/// does it.
final class ArchiveMonitor: Sendable {
  /// Milliseconds to wait after a write before the archive is read: programs write archives in many pieces.
  private static let debounce: UInt32 = 20

  private let archives: [Int: ArchiveLayer]
  /// Whether accesses rely on the watches; otherwise each looks at the archive itself.
  private let isCoherent: Bool
  private let watches: WatchTable
  private let faults: LayerFaults
  private let queue: InvalidationQueue
  private let barriers: LayerBarriers
  private let worker: SerialWorker?
  private let queued = Locked<Set<Int>>([])
  /// Called when a folder has taken the place of an archive.
  private let folderHasCome = Locked<(@Sendable () -> Void)?>(nil)

  init(
    _ layers: [Layer], _ watches: WatchTable, _ faults: LayerFaults, _ queue: InvalidationQueue,
    _ barriers: LayerBarriers, isCoherent: Bool
  ) {
    self.isCoherent = isCoherent
    var archives: [Int: ArchiveLayer] = [:]
    for (index, layer) in layers.enumerated() { archives[index] = layer.archive }
    self.archives = archives
    self.watches = watches
    self.faults = faults
    self.queue = queue
    self.barriers = barriers
    worker = archives.isEmpty ? nil : SerialWorker(name: "archive-reload")
  }

  /// Calls a function from now on when a folder has taken the place of an archive.
  func whenFolderComes(_ action: @escaping @Sendable () -> Void) { folderHasCome.withLock { $0 = action } }

  func start(_ watchdog: LayerWatchdog) throws(Errno) { try worker?.start(watchdog) }

  func stop() { worker?.stop() }

  func contains(_ layer: Int) -> Bool { archives[layer] != nil }

  func watchAll() {
    for (layer, archive) in archives { watch(archive, layer) }
  }

  /// Sets the watch on an archive again.
  func watchAgain(_ layer: Int) {
    if let archive = archives[layer] { watch(archive, layer) }
  }

  /// Where the watch fails, the archive is polled.
  private func watch(_ archive: ArchiveLayer, _ layer: Int) {
    // `LayerRootMonitor.followServers` reports its changes.
    if archive.remote != nil { return archive.setWatched(isCoherent) }
    do throws(Errno) {
      try archive.withWatchPath { path throws(Errno) in try watches.watchArchive(path, layer) }
      if faults[layer] == NodeStore.noWatches { faults[layer] = nil }
    } catch {
      // A missing file is not written to; the watch on its directory reports its coming.
      if error != .noSuchFileOrDirectory { faults[layer] = NodeStore.noWatches }
    }
    archive.setWatched(isCoherent)
  }

  /// Checks whether an archive is another file by now, or was written to.
  /// - Returns: whether its directory is another one.
  func check(_ layer: Int, mount: MountTableEntry?, _ store: NodeStore) -> Bool {
    guard let archive = archives[layer] else { return false }
    let wasReopened = mount.map { archive.reopenParent(mount: $0.id) } ?? false
    if archive.isOutdated { reload(archive, layer, store, isDebounced: false) }
    return wasReopened
  }

  /// Checks whether an archive was written to.
  /// - Parameter isComplete: whether its writer seems to be done.
  func checkContent(_ layer: Int, isComplete: Bool, _ store: NodeStore) {
    guard let archive = archives[layer], archive.isOutdated else { return }
    reload(archive, layer, store, isDebounced: !isComplete)
  }

  /// Calls a function once the invalidations of all queued reloads are handled.
  func addBarrier(_ reached: @escaping @Sendable () -> Void) {
    if archives.isEmpty {
      _ = queue.addBarrier(reached)
    } else {
      barriers.add(after: worker) { [queue] in _ = queue.addBarrier(reached) }
    }
  }

  private func reload(_ archive: ArchiveLayer, _ layer: Int, _ store: NodeStore, isDebounced: Bool) {
    // One that is queued has not read the file yet.
    guard queued.withLock({ $0.insert(layer).inserted }) else { return }
    let job: SerialWorker.Job = { [self] in
      if isDebounced { usleep(Self.debounce * 1000) }
      queued.withLock { _ = $0.remove(layer) }
      // Before it is read, so that no change is missed.
      watch(archive, layer)
      guard let difference = archive.reload() else {
        if archive.reloadError == .folder { folderHasCome.withLock { $0 }?() }
        return
      }
      let laid = LaidArchive(layer: layer, place: archive.laidAt)
      for start in stride(from: 0, to: difference.items.count, by: 1000) {
        let batch = start..<min(start + 1000, difference.items.count)
        queue.add(
          store.table.withLock {
            ArchiveDifferenceMapper.invalidations(for: difference, batch, laid, in: &$0)
          })
      }
      if difference.isRootChanged {
        queue.add(store.table.withLock { ArchiveDifferenceMapper.invalidations(ofRootOf: laid, in: &$0) })
      }
    }
    if archive.gate.isIsolated { archive.gate.run(job) } else { _ = worker?.add(job) }
  }
}

/// The index of an archive's layer, and the folder of the view at which it is laid.
struct LaidArchive {
  let layer: Int
  var place: [[UInt8]] = []
}

/// Maps the difference between two states of an archive to invalidations, as if each item had happened in a
/// directory.
enum ArchiveDifferenceMapper {
  /// Detaches the files that lost their names in the table.
  static func invalidations(
    for difference: ArchiveDifference, _ batch: Range<Int>, _ laid: LaidArchive, in table: inout NodeTable
  ) -> [Invalidation] {
    let roots = laid.place.reduce([NodeID.root]) { above, name in
      above.flatMap { children(name, of: $0, table) }
    }
    var directories: [UInt64: [NodeID]] = [difference.rootNumber: roots]
    var found: [Invalidation] = []
    for item in difference.items[batch] {
      let (unknown, known) = difference.folders(above: item) { directories[$0] != nil }
      var nodes = directories[known] ?? []
      // Each folder is looked up once, however deep it is.
      for folder in unknown.reversed() {
        nodes = nodes.flatMap { children(folder.name, of: $0, table) }
        directories[folder.number] = nodes
      }
      // Nothing is cached in a directory that the kernel does not know.
      for directory in nodes {
        let change = LayerEvent(
          directory: directory, layer: laid.layer, name: difference.name(of: item), mask: mask(of: item))
        found += LayerEventMapper.invalidations(for: change, in: &table)
      }
    }
    return found
  }

  /// The folders above the archive have its root's times.
  static func invalidations(ofRootOf laid: LaidArchive, in table: inout NodeTable) -> [Invalidation] {
    let change = LayerEvent(directory: .root, layer: laid.layer, name: [], mask: .attributes)
    var found = LayerEventMapper.invalidations(for: change, in: &table)
    var above = [NodeID.root]
    for name in laid.place {
      for directory in above {
        let change = LayerEvent(
          directory: directory, layer: laid.layer, name: name, mask: [.attributes, .isDirectory])
        found += LayerEventMapper.invalidations(for: change, in: &table)
      }
      above = above.flatMap { children(name, of: $0, table) }
    }
    return found
  }

  private static func children(_ name: [UInt8], of directory: NodeID, _ table: NodeTable) -> [NodeID] {
    guard let parent = try? table.slot(of: directory) else { return [] }
    return table.directories(named: name, in: parent).map { table.number(of: $0) }
  }

  private static func mask(of item: ArchiveDifference.Item) -> InotifyEvent.Mask {
    let mask: InotifyEvent.Mask =
      switch item.kind {
      case .created: .created
      case .deleted: .deleted
      case .replaced: [.movedFrom, .movedTo]
      case .attributes: .attributes
      }
    return item.isFolder ? mask.union(.isDirectory) : mask
  }
}
