import Fuse
import Layers
import Posix

/// A node, or a layer's path, that the events of a watch concern.
struct WatchOwner: Hashable, Sendable {
  let node: NodeID
  /// The layer of the watched directory; nil for a watch on a file itself.
  let layer: Int?
  /// For a watch on the layer's path: the index of the component for which its parent directory is watched, or
  /// `archive` for the layer's archive itself.
  var pathComponent: UInt8?

  static let archive = UInt8.max
}

/// The inotify watches and their owners.
///
/// An inode has one watch, but may concern several nodes: while a directory is being renamed, or if a layer lies
/// inside another layer.
final class WatchTable: Sendable {
  private struct State {
    var owners: [WatchDescriptor: SmallSet<WatchOwner>] = [:]
    var directories: [NodeID: SmallSet<WatchDescriptor>] = [:]
    var files: [NodeID: WatchDescriptor] = [:]
    var removed = RemovedWatches()
  }

  let inotify: Inotify
  // Not locked during inotify_add_watch(2), which asks the file system for permission: one that does not answer
  // would block all requests. Locked during inotify_rm_watch(2), which resolves no path.
  private let state = Locked(State())

  static let directoryEvents: InotifyEvent.Mask = [
    .modified, .closeWrite, .attributes, .created, .deleted, .movedFrom, .movedTo, .deletedSelf,
    .movedSelf,
  ]
  static let fileEvents: InotifyEvent.Mask = [.modified, .closeWrite, .attributes]

  init() throws(Errno) { inotify = try Inotify() }

  var count: Int { state.withLock { $0.owners.count } }

  func watch(_ part: LayerDirectory, for node: NodeID) throws(Errno) -> WatchDescriptor? {
    try part.withWatchPath { path throws(Errno) in
      try add(path, Self.directoryEvents) { watch, state in
        state.owners[watch, default: []].insert(WatchOwner(node: node, layer: part.layer))
        state.directories[node, default: []].insert(watch)
      }
    }
  }

  /// Adds a watch and records what it is for.
  ///
  /// An event that comes before it is recorded is not seen: read what is watched afterwards.
  private func add(
    _ path: CName, _ events: InotifyEvent.Mask, _ record: (WatchDescriptor, inout State) -> Void
  ) throws(Errno) -> WatchDescriptor {
    while true {
      let removed = state.withLock { $0.removed.count }
      let watch = try inotify.watch(path, events)
      let isRecorded = state.withLock { state in
        // Another thread may have removed the inode's watch for its last former owner.
        if state.removed.contains(watch, since: removed) { return false }
        record(watch, &state)
        return true
      }
      if isRecorded { return watch }
    }
  }

  /// Watches a file itself, so that changes by any of its hard links are reported.
  func watchFile(_ node: NodeID, at path: CName, follows: Bool) throws(Errno) {
    if hasFileWatch(node) { return }
    let events = follows ? Self.fileEvents : Self.fileEvents.union(.dontFollow)
    _ = try add(path, events) { watch, state in
      let owner = WatchOwner(node: node, layer: nil)
      state.owners[watch, default: []].insert(owner)
      guard let present = state.files[node] else { return state.files[node] = watch }
      // Another thread was faster, and its path led to another file.
      if present != watch { remove(watch, &state, owner) }
    }
  }

  /// Watches a directory for the component of a layer's path that it contains.
  /// - Throws: as open(2) and inotify_add_watch(2).
  func watchPathComponent(_ path: [UInt8], _ layer: Int, _ component: Int) throws(Errno) {
    let directory = try withCName(path) { path throws(Errno) in
      try Descriptor.open(path, [.pathOnly, .directory])
    }
    try directory.withWatchPath { path throws(Errno) in
      // `IN_MASK_ADD` keeps the events for which the directory may be watched as a part.
      _ = try add(path, .names.union(.maskAdd)) { watch, state in
        state.owners[watch, default: []].insert(
          WatchOwner(node: .root, layer: layer, pathComponent: UInt8(clamping: min(component, 254))))
      }
    }
  }

  /// Watches a layer's archive, and no longer the file that was its archive before.
  /// - Throws: ENOSPC beyond `fs.inotify.max_user_watches`; ENOENT.
  func watchArchive(_ path: CName, _ layer: Int) throws(Errno) {
    _ = try add(path, Self.fileEvents.union([.maskAdd, .dontFollow])) { watch, state in
      let owner = WatchOwner(node: .root, layer: layer, pathComponent: WatchOwner.archive)
      for (former, owners) in state.owners where former != watch && owners.elements.contains(owner) {
        remove(former, &state) { $0 == owner }
      }
      state.owners[watch, default: []].insert(owner)
    }
  }

  /// Removes the watches on a layer's path and on its archive.
  func removePathWatches(of layer: Int) {
    func isOfPath(_ owner: WatchOwner) -> Bool { owner.pathComponent != nil && owner.layer == layer }
    state.withLock { state in
      let watches = state.owners.filter { $0.value.elements.contains(where: isOfPath) }.keys
      for watch in watches { remove(watch, &state, isOfPath) }
    }
  }

  func hasFileWatch(_ node: NodeID) -> Bool { state.withLock { $0.files[node] != nil } }

  func removeWatches(of node: NodeID, except kept: [WatchDescriptor] = []) {
    state.withLock { state in
      guard let watches = state.directories.removeValue(forKey: node)?.elements else { return }
      for watch in watches.subtracting(kept) {
        remove(watch, &state) { $0.node == node && $0.pathComponent == nil }
      }
      let remaining = SmallSet(watches.intersection(kept))
      if !remaining.isEmpty { state.directories[node] = remaining }
    }
  }

  func removeFileWatch(_ node: NodeID) {
    state.withLock { state in
      guard let watch = state.files.removeValue(forKey: node) else { return }
      remove(watch, &state, WatchOwner(node: node, layer: nil))
    }
  }

  func owners(of watch: WatchDescriptor) -> Set<WatchOwner> {
    state.withLock { $0.owners[watch]?.elements ?? [] }
  }

  /// Removes a watch that the kernel ended (`IN_IGNORED`).
  func removeEnded(_ watch: WatchDescriptor) {
    state.withLock { state in
      state.removed.append(watch)
      for owner in state.owners.removeValue(forKey: watch)?.elements ?? [] {
        if owner.layer == nil {
          state.files[owner.node] = nil
        } else {
          state.directories[owner.node]?.remove(watch)
          if state.directories[owner.node]?.isEmpty == true { state.directories[owner.node] = nil }
        }
      }
    }
  }

  /// Removes one of a watch's owners, of which a file with many names has as many.
  private func remove(_ watch: WatchDescriptor, _ state: inout State, _ owner: WatchOwner) {
    state.owners[watch]?.remove(owner)
    if state.owners[watch]?.isEmpty == true { remove(watch, &state) { _ in true } }
  }

  private func remove(_ watch: WatchDescriptor, _ state: inout State, _ isOwner: (WatchOwner) -> Bool) {
    guard var owners = state.owners[watch] else { return }
    owners = owners.filter { !isOwner($0) }
    if owners.isEmpty {
      state.owners[watch] = nil
      state.removed.append(watch)
      inotify.remove(watch)
    } else {
      state.owners[watch] = owners
    }
  }
}
