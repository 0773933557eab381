import Layers
import Posix

/// Watches what all layers have at the paths that pages show: a mount reports changes of what wins only.
final class UIVersionWatch: Sendable {
  /// A name in a watched directory that concerns a shown path.
  private struct Role {
    let name: [UInt8]
    /// Whether the path leads on beneath the name.
    let leadsOn: Bool
  }

  private struct ShownPath {
    let path: [[UInt8]]
    let layers: UILayers
    var roles: [WatchDescriptor: [Role]] = [:]

    /// What an event concerns: an entry, or what hides it.
    func roles(concernedBy event: InotifyEvent) -> [Role] {
      guard let roles = roles[event.watch], !event.name.isEmpty else { return [] }
      let foldsNames = layers.status.foldsNames
      let name = WhiteoutMarker.name(concernedBy: event.name)
      return roles.filter { foldsNames ? NameFolding.areEqual($0.name, name) : $0.name == name }
    }
  }

  /// So many paths are watched, those that were shown last.
  private static let most = 8
  private static let events: InotifyEvent.Mask = [.content, .names, .attributes]

  private struct State {
    /// The last one was shown last.
    var shown: [ShownPath] = []
    var watches: Set<WatchDescriptor> = []
    /// So many threads look directories up, which no lock may wait for.
    var lookups = 0
  }

  private let inotify: Inotify
  private let state = Locked(State())

  init() throws(Errno) { inotify = try Inotify() }

  /// The descriptor to poll for events.
  var rawValue: CInt { inotify.rawValue }

  /// Begins to watch a path, before what is there is read.
  func show(_ path: [[UInt8]], _ layers: UILayers) {
    state.withLock { $0.lookups += 1 }
    let fresh = watched(path, layers)
    state.withLock { state in
      let others = state.shown.filter { $0.path != path }
      let present = state.shown.first { $0.path == path }
      state.shown = others.suffix(Self.most - 1) + [present ?? fresh]
      end(&state, fresh)
    }
  }

  /// - Returns: the shown paths at which something may have changed.
  func changed() -> Set<[UInt8]> {
    guard let events = try? inotify.read(), !events.isEmpty else { return [] }
    let isAnything = events.contains { $0.mask.contains(.overflow) }
    var paths: Set<[UInt8]> = []
    for one in state.withLock({ $0.shown }) {
      let roles = events.flatMap { one.roles(concernedBy: $0) }
      if !isAnything, roles.isEmpty { continue }
      paths.insert(one.path.joinedPath)
      // Directories on the way may have come or gone.
      if isAnything || roles.contains(where: \.leadsOn) { watchAgain(one) }
    }
    return paths
  }

  private func watchAgain(_ shown: ShownPath) {
    state.withLock { $0.lookups += 1 }
    let fresh = watched(shown.path, shown.layers)
    state.withLock { end(&$0, fresh) }
  }

  /// Takes what a lookup has found, and removes the watches that no path needs, but none that another lookup has just added.
  private func end(_ state: inout State, _ fresh: ShownPath) {
    state.lookups -= 1
    state.watches.formUnion(fresh.roles.keys)
    if let index = state.shown.firstIndex(where: { $0.path == fresh.path }) {
      let others = state.lookups == 0 ? [:] : state.shown[index].roles
      state.shown[index] = fresh
      state.shown[index].roles.merge(others) { fresh, _ in fresh }
    }
    if state.lookups > 0 { return }
    let unused = state.watches.subtracting(state.shown.flatMap(\.roles.keys))
    for watch in unused { inotify.remove(watch) }
    state.watches.subtract(unused)
  }

  /// Watches the directories on the way to a path in all layers, each before what is beneath it is looked up.
  private func watched(_ path: [[UInt8]], _ layers: UILayers) -> ShownPath {
    var watched = ShownPath(path: path, layers: layers)
    for (index, layer) in layers.status.mounted.layers.enumerated() {
      if layer.kind == .archive {
        watchArchive(layer.laidPath.path, for: &watched)
      } else if let layer = try? layers.open(index) {
        watch(layer, for: &watched)
      }
    }
    return watched
  }

  private func watch(_ layer: Layer, for shown: inout ShownPath) {
    for depth in shown.path.indices {
      // Where there is no directory, there is none beneath.
      guard let directory = try? layer.directory(at: Array(shown.path[..<depth])) else { return }
      let role = Role(name: shown.path[depth], leadsOn: depth + 1 < shown.path.count)
      for part in directory.parts {
        let watch = try? part.withWatchPath { path throws(Errno) in try inotify.watch(path, Self.events) }
        if let watch { shown.roles[watch, default: []].append(role) }
      }
    }
  }

  /// Watches the directory that holds an archive.
  private func watchArchive(_ path: [UInt8], for shown: inout ShownPath) {
    let file = ArchivePath(path)?.archive ?? path
    guard let end = file.lastIndex(of: UInt8(ascii: "/")) else { return }
    let watch = try? withCName(Array(file[...end])) { path throws(Errno) in
      try inotify.watch(path, Self.events)
    }
    let role = Role(name: Array(file[(end + 1)...]), leadsOn: false)
    if let watch { shown.roles[watch, default: []].append(role) }
  }
}
