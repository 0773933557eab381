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
  var placeName: UInt8?

  static let archive = UInt8.max
}

/// The watches, and whom each of them concerns.
///
/// One inode has one watch, but may concern several nodes: a directory on its way from one place to another, a
/// layer that lies inside another layer.
final class WatchTable: Sendable {
  private struct State {
    var users: [WatchDescriptor: SmallSet<WatchOwner>] = [:]
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
  var count: Int { state.withLock { $0.users.count } }

  /// Watches a part of a directory.
  /// - Returns: nil for a folder of an archive, which is watched as a whole.
  /// - Throws: ENOSPC when the user has no more watches.
  func watch(_ part: LayerDirectory, for node: NodeID) throws(Errno) -> WatchDescriptor? {
    try part.withWatchPath { path throws(Errno) in
      try state.withLock { state throws(Errno) in
        let watch = try inotify.watch(path, Self.directoryEvents)
        state.users[watch, default: []].insert(WatchOwner(node: node, layer: part.layer))
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
      state.users[watch, default: []].insert(WatchOwner(node: node, layer: nil))
      state.files[node] = watch
    }
  }

  /// Watches a directory that has a name of a layer's path.
  /// - Throws: as open(2) and inotify_add_watch(2).
  func watchPlace(_ path: [UInt8], _ layer: Int, _ name: Int) throws(Errno) {
    // The path may lead through our own mount, so nobody who answers its requests is to wait for this.
    let place = try withCName(path) { path throws(Errno) in
      try Descriptor.open(path, [.pathOnly, .directory])
    }
    try place.withWatchPath { path throws(Errno) in
      try state.withLock { state throws(Errno) in
        // It may be a busy place, and must not lose what it is watched for as a part.
        let watch = try inotify.watch(path, .names.union(.maskAdd))
        state.users[watch, default: []].insert(
          WatchOwner(node: .root, layer: layer, placeName: UInt8(clamping: min(name, 254))))
      }
    }
  }

  /// Watches a layer's archive, in place of the file that it was before.
  /// - Throws: ENOSPC when the user has no more watches; ENOENT when there is none.
  func watchArchive(_ path: CName, _ layer: Int) throws(Errno) {
    try state.withLock { state throws(Errno) in
      let watch = try inotify.watch(path, Self.fileEvents.union([.maskAdd, .dontFollow]))
      let user = WatchOwner(node: .root, layer: layer, placeName: WatchOwner.archive)
      for (former, users) in state.users where former != watch && users.elements.contains(user) {
        remove(former, &state) { $0 == user }
      }
      state.users[watch, default: []].insert(user)
    }
  }

  /// Gives back what is watched for the layers' paths.
  func stopPlaces() {
    state.withLock { state in
      let places = state.users.filter { $0.value.elements.contains { $0.placeName != nil } }.keys
      for watch in places { remove(watch, &state) { $0.placeName != nil } }
    }
  }

  /// Whether a file itself is watched.
  func watchesFile(_ node: NodeID) -> Bool { state.withLock { $0.files[node] != nil } }

  /// Gives back what a directory's node watches, but for some of it.
  func stop(_ node: NodeID, except kept: [WatchDescriptor] = []) {
    state.withLock { state in
      guard let watches = state.directories.removeValue(forKey: node)?.elements else { return }
      for watch in watches.subtracting(kept) {
        remove(watch, &state) { $0.node == node && $0.placeName == nil }
      }
      let rest = SmallSet(watches.intersection(kept))
      if !rest.isEmpty { state.directories[node] = rest }
    }
  }

  /// Gives back the watch on a file itself, if it has one.
  func stopFile(_ node: NodeID) {
    state.withLock { state in
      guard let watch = state.files.removeValue(forKey: node) else { return }
      remove(watch, &state) { $0.node == node && $0.layer == nil }
    }
  }

  /// Whom a watch concerns.
  func users(of watch: WatchDescriptor) -> Set<WatchOwner> {
    state.withLock { $0.users[watch]?.elements ?? [] }
  }

  /// Forgets a watch that the kernel ended.
  func ended(_ watch: WatchDescriptor) {
    state.withLock { state in
      for user in state.users.removeValue(forKey: watch)?.elements ?? [] {
        if user.layer == nil {
          state.files[user.node] = nil
        } else {
          state.directories[user.node]?.remove(watch)
          if state.directories[user.node]?.isEmpty == true { state.directories[user.node] = nil }
        }
      }
    }
  }

  private func remove(_ watch: WatchDescriptor, _ state: inout State, _ isUser: (WatchOwner) -> Bool) {
    guard var users = state.users[watch] else { return }
    users = users.filter { !isUser($0) }
    if users.isEmpty {
      state.users[watch] = nil
      inotify.remove(watch)
    } else {
      state.users[watch] = users
    }
  }
}
