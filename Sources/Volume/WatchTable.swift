import Fuse
import Layers
import Posix

/// Who is to be told of a watch's events.
struct WatchUser: Hashable, Sendable {
  let node: NodeID
  /// The layer of the watched directory; nil for a watch on a file itself.
  let layer: Int?
  /// Whether it is the directory that holds the layer's root.
  var isParent = false
}

/// The watches, and whom each of them concerns.
///
/// One inode has one watch, but may concern several nodes: a directory on its way from one place to another, a
/// layer that lies inside another layer.
final class WatchTable: Sendable {
  private struct State {
    var users: [WatchNumber: SmallSet<WatchUser>] = [:]
    /// Watches on directories' parts, by the directories' nodes.
    var directories: [NodeID: SmallSet<WatchNumber>] = [:]
    /// Watches on files themselves, by their nodes.
    var files: [NodeID: WatchNumber] = [:]
  }

  let inotify: Inotify
  // Also held while a watch is added or removed: else one that is being given back could be taken by another.
  private let state = Locked(State())

  static let directoryEvents: InotifyEvent.Mask = [
    .modified, .closedAfterWriting, .attributes, .created, .deleted, .movedFrom, .movedTo, .deletedSelf,
    .movedSelf,
  ]
  /// No events of names: a file has none.
  static let fileEvents: InotifyEvent.Mask = [.modified, .closedAfterWriting, .attributes]

  init() throws(Errno) { inotify = try Inotify() }

  /// How many watches there are.
  var count: Int { state.withLock { $0.users.count } }

  /// Watches a part of a directory.
  /// - Throws: ENOSPC when the user has no more watches.
  func watch(_ part: LayerDirectory, for node: NodeID) throws(Errno) -> WatchNumber {
    try state.withLock { state throws(Errno) in
      let watch = try part.withWatchPath { path throws(Errno) in
        try inotify.watch(path, Self.directoryEvents)
      }
      state.users[watch, default: []].insert(WatchUser(node: node, layer: part.layer))
      state.directories[node, default: []].insert(watch)
      return watch
    }
  }

  /// Watches a file itself, wherever its names are.
  /// - Parameter follows: whether the path is a link of `/proc/self/fd` rather than a name of the file.
  /// - Throws: ENOSPC when the user has no more watches; ENOENT when the path leads nowhere.
  func watchFile(_ node: NodeID, at path: CName, follows: Bool) throws(Errno) {
    try state.withLock { state throws(Errno) in
      if state.files[node] != nil { return }
      let watch = try inotify.watch(path, follows ? Self.fileEvents : Self.fileEvents.union(.dontFollow))
      state.users[watch, default: []].insert(WatchUser(node: node, layer: nil))
      state.files[node] = watch
    }
  }

  /// Watches the directory that holds a layer's root.
  /// - Throws: as open(2) and inotify_add_watch(2).
  func watchParent(of path: [UInt8], _ layer: Int) throws(Errno) {
    guard let slash = path.lastIndex(of: UInt8(ascii: "/")), slash + 1 < path.count else { return }
    let parent = slash == 0 ? [UInt8(ascii: "/")] : Array(path[..<slash])
    try state.withLock { state throws(Errno) in
      let watch = try withCName(parent) { name throws(Errno) in
        // It may be a busy place; if it is a part as well, that adds what is missing.
        try inotify.watch(name, .names)
      }
      state.users[watch, default: []].insert(WatchUser(node: .root, layer: layer, isParent: true))
    }
  }

  /// Whether a file itself is watched.
  func watchesFile(_ node: NodeID) -> Bool { state.withLock { $0.files[node] != nil } }

  /// Gives back what a directory's node watches, but for some of it.
  func stop(_ node: NodeID, except kept: [WatchNumber] = []) {
    state.withLock { state in
      guard let watches = state.directories.removeValue(forKey: node)?.elements else { return }
      for watch in watches.subtracting(kept) { remove(watch, &state) { $0.node == node && !$0.isParent } }
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
  func users(of watch: WatchNumber) -> Set<WatchUser> { state.withLock { $0.users[watch]?.elements ?? [] } }

  /// Forgets a watch that the kernel ended.
  func ended(_ watch: WatchNumber) {
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

  private func remove(_ watch: WatchNumber, _ state: inout State, _ isUser: (WatchUser) -> Bool) {
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
