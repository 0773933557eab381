import ControlClient
import Glibc
import Layers
import Posix
import Routing

/// The layers of a mount of which watches tell all that changes in the mount.
///
/// Of a mount whose own directories are watched, each open, read and close pays a little: the kernel looks whether an event
/// is wanted. Watches on the layers cost the mount's users nothing.
struct UIWatchedLayers {
  /// What to watch, in the order of the layers, and the mount's end.
  let roots: [WatchedRoot]
  private let layers: UILayers
  /// What the paths of the roots lead to.
  private let identities: [FileIdentity?]

  /// - Returns: nil where the mount itself has to be watched: a layer is out of reach, or sends no events; names or tables of
  ///   layers show otherwise in the mount; the daemon has no barriers, or is another user's, which may name any folder.
  init?(_ mount: UIMount) {
    guard MountTableEntry.top(at: mount.mountPoint.path)?.user == geteuid(),
      let status = try? mount.status(), Self.showsLayers(status),
      (try? Self.passBarrier(of: mount)) != nil
    else { return nil }
    let mounted = status.mounted.layers
    let watched = mounted.compactMap { Self.root(of: $0, excluded: mount.device) }
    guard watched.count == mounted.count else { return nil }
    roots = watched + [.end(mount.mountPoint.path)]
    layers = UILayers(mount: mount, status: status)
    identities = Self.identities(roots)
  }

  private static func showsLayers(_ status: UIStatus) -> Bool {
    let options = status.value["options"]
    return !status.foldsNames && options?["strings"]?.string != "merge"
      && (options?["hide"]?.string ?? "").isEmpty
  }

  /// - Returns: nil for a layer whose changes are not reported, or not to the caller.
  private static func root(of layer: MountedLayer, excluded: UInt64) -> WatchedRoot? {
    let root: WatchedRoot
    switch layer.kind {
    case .directory:
      root = .directory(layer.laidPath.path)
      guard layer.problems.isEmpty,
        let device = try? Descriptor.open(root.path, [.read, .directory, .noFollow]).device(),
        device != excluded
      else { return nil }
    case .archive:
      // Otherwise it is a URL.
      guard let path = ArchivePath(layer.laidPath.path)?.archive, path.first == slash else { return nil }
      root = .archive(path)
    }
    let end = root.path.lastIndex(of: slash) ?? 0
    let holder = try? Descriptor.open(Array(root.path[...end]), [.read, .directory])
    return holder == nil ? nil : root
  }

  private static func identities(_ roots: [WatchedRoot]) -> [FileIdentity?] {
    roots.map { try? Descriptor.open($0.path, [.pathOnly]).attributes().identity }
  }

  /// Whether the paths still lead to the same directories, of archives to the same files.
  var isPresent: Bool { identities == Self.identities(roots) }

  /// Waits until what has changed in the layers is visible in the mount.
  func passBarrier() throws(Errno) { try Self.passBarrier(of: layers.mount) }

  private static func passBarrier(of mount: UIMount) throws(Errno) {
    _ = try StatusClient.read(.barrier, of: mount.mountPoint.open([.read, .directory]))
  }

  // MARK: - What changes in the mount

  /// The paths in the mount of changes in layers.
  func paths(of changes: Set<WatchedTree.Change>) -> Set<[UInt8]> {
    Set(changes.compactMap { path(of: $0)?.joinedPath })
  }

  /// The paths in the mount of those changes in layers that no layer above covers.
  func visiblePaths(of changes: Set<WatchedTree.Change>) -> Set<[UInt8]> {
    var opened: [Int: Layer] = [:]
    let visible = changes.compactMap { change -> [UInt8]? in
      guard let path = path(of: change) else { return nil }
      for index in 0..<change.root {
        guard let layer = opened[index] ?? (try? layers.open(index)) else { continue }
        opened[index] = layer
        if layer.covers(path) { return nil }
      }
      return path.joinedPath
    }
    return Set(visible)
  }

  /// - Returns: nil for what the mount does not show.
  private func path(of change: WatchedTree.Change) -> [[UInt8]]? {
    let layer = layers.status.mounted.layers[change.root]
    var path = change.path
    guard let last = path.popLast(), !path.contains(where: { WhiteoutMarker.isMarker($0) }) else {
      return nil
    }
    let directory = layer.laidPath.place + path
    if WhiteoutMarker.isOpaque(last) { return directory }
    let name = WhiteoutMarker.name(concernedBy: last)
    // The folder in which the daemon prepares what it writes has such a name.
    if name.isEmpty || WhiteoutMarker.isMarker(name) { return nil }
    let isControl = directory.isEmpty && Array((layers.status.value["control"]?.string ?? "").utf8) == name
    return isControl ? nil : directory + [name]
  }
}

extension Layer {
  /// Whether a file or whiteout of this layer, at the path or on the way to it, hides what layers below have there.
  fileprivate func covers(_ path: [[UInt8]]) -> Bool {
    for end in path.indices {
      switch try? entry(at: Array(path[...end])) {
      case .file, .whiteout: return true
      case .directory: continue
      case .nothing, nil: return false
      }
    }
    return false
  }
}

private let slash = UInt8(ascii: "/")
