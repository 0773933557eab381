import ControlClient
import Glibc
import Posix

/// Watches for what changes in a mount: its layers where these tell all, else the mount itself.
struct UIChangeWatch: ~Copyable {
  enum Outcome {
    /// Paths from the root.
    case changed(Set<[UInt8]>)
    /// So many entries, which are not named.
    case many(Int)
    /// Everything may have.
    case anything
    case unmounted
  }

  /// More changed paths at once are reported by their number.
  private static let mostPaths = 100

  private let mount: UIMount
  /// nil while the mount itself is watched.
  private let layers: UIWatchedLayers?
  private var tree: WatchedTree

  private init(_ mount: UIMount, _ layers: UIWatchedLayers?, _ tree: consuming WatchedTree) {
    (self.mount, self.layers) = (mount, layers)
    self.tree = tree
  }

  private static func watching(
    _ mount: UIMount, _ layers: UIWatchedLayers?
  ) throws(Errno) -> UIChangeWatch {
    let roots: [WatchedRoot]
    if let layers {
      roots = layers.roots
    } else {
      roots = [.mount(mount.mountPoint.path, control: (try? mount.mountPoint.controlFile())?.name ?? [])]
    }
    let excluded = layers == nil ? nil : mount.device
    var tree = WatchedTree(try Inotify(), roots: roots, excludedDevice: excluded)
    try tree.watchRoots()
    return UIChangeWatch(mount, layers, tree)
  }

  /// Begins to watch.
  /// - Throws: ENOSPC beyond `fs.inotify.max_user_watches`.
  static func begin(_ mount: UIMount) throws(Errno) -> UIChangeWatch {
    guard let layers = UIWatchedLayers(mount) else { return try watching(mount, nil) }
    do throws(Errno) { return try watching(mount, layers) } catch {
      // The mount has fewer directories than its layers together.
      return try watching(mount, nil)
    }
  }

  /// The descriptor to poll for changes.
  var rawValue: CInt { tree.rawValue }

  /// Whether it watches what is to be watched. To be asked from time to time: not all of it is reported by events.
  /// - Parameter haveLayersChanged: whether the mount has other layers than when this began.
  func isPresent(haveLayersChanged: Bool) -> Bool {
    if let layers { return !haveLayersChanged && layers.isPresent }
    return !haveLayersChanged || UIWatchedLayers(mount) == nil
  }

  /// Reads what has changed, which is then visible in the mount.
  /// - Throws: as `begin`.
  mutating func read() throws(Errno) -> Outcome {
    let outcome = try tree.read()
    switch outcome {
    case .unmounted: return .unmounted
    case .anything:
      try? layers?.passBarrier()
      return .anything
    case .changed(let changes):
      guard let layers, !changes.isEmpty else { return Self.outcome(Set(changes.map(\.path.joinedPath))) }
      try? layers.passBarrier()
      return Self.outcome(
        changes.count > Self.mostPaths ? layers.paths(of: changes) : layers.visiblePaths(of: changes))
    }
  }

  private static func outcome(_ paths: Set<[UInt8]>) -> Outcome {
    paths.count > mostPaths ? .many(paths.count) : .changed(paths)
  }
}
