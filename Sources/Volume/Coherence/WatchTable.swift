import Fuse
import Layers
import Posix

/// Who is to be told of a watch's events.
struct WatchOwner: Hashable, Sendable {
  let node: NodeID
  /// The layer of the watched directory; nil for a watch on a file itself.
  let layer: Int?
  /// Which name of the layer's path the watched directory has, if it is watched for that; `archive` for the
  /// layer's archive itself.
  var pathComponent: UInt8?

  static let archive = UInt8.max
}

/// The watches, and whom each of them concerns.
///
/// One inode has one watch, but may concern several nodes: a directory on its way from one place to another, a
/// layer that lies inside another layer.
final class WatchTable: Sendable {
  private struct State {
    var owners: [WatchDescriptor: SmallSet<WatchOwner>] = [:]
    /// Watches on directories' parts, by the directories' nodes.
    var directories: [NodeID: SmallSet<WatchDescriptor>] = [:]
    /// Watches on files themselves, by their nodes.
    var files: [NodeID: WatchDescriptor] = [:]
  }

  let inotify: Inotify
  // Also held while a watch is added or removed: else one that is being given back could be taken by another.
  private let state = Locked(State())

  static let directoryEvents: InotifyEvent.Mask = [
    .modified, .closeWrite, .attributes, .created, .deleted, .movedFrom, .movedTo, .deletedSelf,
    .movedSelf,
  ]
  /// No events of names: a file has none.
  static let fileEvents: InotifyEvent.Mask = [.modified, .closeWrite, .attributes]

  init() throws(Errno) { inotify = try Inotify() }

  /// How many watches there are.
  var count: Int { state.withLock { $0.owners.count } }

  /// Watches a part of a directory.
  /// - Returns: nil for a folder of an archive, which is watched as a whole.
  /// - Throws: ENOSPC when the user has no more watches.
  func watch(_ part: LayerDirectory, for node: NodeID) throws(Errno) -> WatchDescriptor? {
    try part.withWatchPath { path throws(Errno) in
      try state.withLock { state throws(Errno) in
        let watch = try inotify.watch(path, Self.directoryEvents)
        state.owners[watch, default: []].insert(WatchOwner(node: node, layer: part.layer))
        state.directories[node, default: []].insert(watch)
        return watch
      }
    }
  }

  /// Watches a file itself, wherever its names are.
  /// - Parameter follows: whether the path is a link of `/proc/self/fd` rather than a name of the file.
  /// - Throws: ENOSPC when the user has no more watches; ENOENT when the path leads nowhere.
  func watchFile(_ node: NodeID, at path: CName, follows: Bool) throws(Errno) {
    try state.withLock { state throws(Errno) in
      if state.files[node] != nil { return }
      let watch = try inotify.watch(path, follows ? Self.fileEvents : Self.fileEvents.union(.dontFollow))
      state.owners[watch, default: []].insert(WatchOwner(node: node, layer: nil))
      state.files[node] = watch
    }
  }

  /// Watches a directory that has a name of a layer's path.
  /// - Throws: as open(2) and inotify_add_watch(2).
  func watchPathComponent(_ path: [UInt8], _ layer: Int, _ name: Int) throws(Errno) {
    // The path may lead through our own mount, so nobody who answers its requests is to wait for this.
    let place = try withCName(path) { path throws(Errno) in
      try Descriptor.open(path, [.pathOnly, .directory])
    }
    try place.withWatchPath { path throws(Errno) in
      try state.withLock { state throws(Errno) in
        // It may be a busy place, and must not lose what it is watched for as a part.
        let watch = try inotify.watch(path, .names.union(.maskAdd))
        state.owners[watch, default: []].insert(
          WatchOwner(node: .root, layer: layer, pathComponent: UInt8(clamping: min(name, 254))))
      }
    }
  }

  /// Watches a layer's archive, in place of the file that it was before.
  /// - Throws: ENOSPC when the user has no more watches; ENOENT when there is none.
  func watchArchive(_ path: CName, _ layer: Int) throws(Errno) {
    try state.withLock { state throws(Errno) in
      let watch = try inotify.watch(path, Self.fileEvents.union([.maskAdd, .dontFollow]))
      let owner = WatchOwner(node: .root, layer: layer, pathComponent: WatchOwner.archive)
      for (former, owners) in state.owners where former != watch && owners.elements.contains(owner) {
        remove(former, &state) { $0 == owner }
      }
      state.owners[watch, default: []].insert(owner)
    }
  }

  /// Gives back what is watched for the layers' paths.
  func removePathWatches() {
    state.withLock { state in
      let places = state.owners.filter { $0.value.elements.contains { $0.pathComponent != nil } }.keys
      for watch in places { remove(watch, &state) { $0.pathComponent != nil } }
    }
  }

  /// Whether a file itself is watched.
  func hasFileWatch(_ node: NodeID) -> Bool { state.withLock { $0.files[node] != nil } }

  /// Gives back what a directory's node watches, but for some of it.
  func removeWatches(of node: NodeID, except kept: [WatchDescriptor] = []) {
    state.withLock { state in
      guard let watches = state.directories.removeValue(forKey: node)?.elements else { return }
      for watch in watches.subtracting(kept) {
        remove(watch, &state) { $0.node == node && $0.pathComponent == nil }
      }
      let rest = SmallSet(watches.intersection(kept))
      if !rest.isEmpty { state.directories[node] = rest }
    }
  }

  /// Gives back the watch on a file itself, if it has one.
  func removeFileWatch(_ node: NodeID) {
    state.withLock { state in
      guard let watch = state.files.removeValue(forKey: node) else { return }
      remove(watch, &state) { $0.node == node && $0.layer == nil }
    }
  }

  /// Whom a watch concerns.
  func owners(of watch: WatchDescriptor) -> Set<WatchOwner> {
    state.withLock { $0.owners[watch]?.elements ?? [] }
  }

  /// Forgets a watch that the kernel ended.
  func removeEnded(_ watch: WatchDescriptor) {
    state.withLock { state in
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

  private func remove(_ watch: WatchDescriptor, _ state: inout State, _ isOwner: (WatchOwner) -> Bool) {
    guard var owners = state.owners[watch] else { return }
    owners = owners.filter { !isOwner($0) }
    if owners.isEmpty {
      state.owners[watch] = nil
      inotify.remove(watch)
    } else {
      state.owners[watch] = owners
    }
  }
}
