import Fuse
import Layers
import Posix

/// Where a layer is: what can happen to it as a whole.
struct LayerRootMonitor: Sendable {
  let path: [UInt8]
  /// The names on the path, from the root of all.
  let names: [[UInt8]]
  /// The mount that held the path at the beginning; nil if there was no telling.
  let mount: MountTableEntry?
  /// Whether mounts inside the layer are out of sight.
  let isPrivateClone: Bool

  init(_ layer: Layer) {
    path = layer.place
    names = path.split(separator: UInt8(ascii: "/")).map { Array($0) }
    mount = MountTableEntry.containing(path)
    isPrivateClone = layer.isPrivateClone
  }

  /// The directory that has a name of the path.
  func parent(of place: Int) -> [UInt8] {
    [UInt8(ascii: "/")] + names[..<place].joinedPath
  }

  /// Whether the mount lies where the one did that held the path at the beginning.
  func isHeld(by entry: MountTableEntry) -> Bool { entry.mountPoint == mount?.mountPoint }

  /// What an event of a layer's own root means for the layer.
  static func fault(_ mask: InotifyEvent.Mask) -> String? {
    if mask.contains(.deletedSelf) { return deleted }
    if mask.contains(.movedSelf) { return movedAway }
    if mask.contains(.unmounted) { return unmounted }
    return nil
  }

  static let deleted = "its directory was deleted"
  static let movedAway = "its directory was moved away"
  static let unmounted = "its file system was unmounted"
}

extension LayerWatcher {
  /// inotify(7) tells of an unmount only when nobody holds the file system any more, and we do.
  func noteMounts(_ volume: Volume) {
    let mounts = MountTableEntry.all()
    var hasChanged = note(innerMountsIn: mounts)
    for layer in places.indices {
      guard let mount = mount(of: layer) else { continue }
      // A new mount may have the number of an old one.
      if fault(of: layer) == nil, !mounts.contains(where: { $0.id == mount.id && $0.device == mount.device })
      {
        note(fault: LayerRootMonitor.unmounted, of: layer)
        hasChanged = true
      }
      if fault(of: layer) == LayerRootMonitor.unmounted, takeOverMount(of: layer, volume) {
        hasChanged = true
      }
    }
    if hasChanged { queue.add([Invalidation(subject: .subtree(.root))]) }
  }

  /// A layer whose file system is gone becomes what is mounted in its stead: a disk that is plugged in again.
  private func takeOverMount(of layer: Int, _ volume: Volume) -> Bool {
    guard let entry = MountTableEntry.containing(places[layer].path), places[layer].isHeld(by: entry),
      entry.mountPoint != volume.resources.mountPoint
    else { return false }
    if case .directory(let directory) = volume.stack.layers[layer] {
      guard let place = try? directory.reopen(mount: entry.id), place != .elsewhere else { return false }
    }
    note(mount: entry, of: layer)
    note(fault: nil, of: layer)
    if let archive = archives[layer] { _ = lookAtArchive(archive, layer, volume) }
    return true
  }

  /// Notes what is mounted inside the layers that are no private clones: a mount changes what is seen there,
  /// and no event tells.
  /// - Returns: whether that is something else than before.
  @discardableResult
  func note(innerMountsIn mounts: [MountTableEntry]) -> Bool {
    var hasChanged = false
    for (layer, place) in places.enumerated() where !place.isPrivateClone {
      let folder = place.path + [UInt8(ascii: "/")]
      let inside = mounts.filter { $0.mountPoint.starts(with: folder) }
      if note(innerMounts: Set(inside.map(\.id)), of: layer) { hasChanged = true }
    }
    return hasChanged
  }

  /// Watches the directories on the layers' paths, for the day that a name on one of them stands for something
  /// else. Where that cannot be, the path is looked at now and then.
  func watchPlaces() {
    var isWatched = true
    for (layer, place) in places.enumerated() {
      for name in place.names.indices {
        if (try? watches.watchPathComponent(place.parent(of: name), layer, name)) == nil { isWatched = false }
      }
    }
    for (layer, archive) in archives { watchArchive(archive, layer) }
    note(looksAtPlaces: !isWatched)
  }

  /// Looks whether the layers' paths still lead to the directories that the layers are, and takes over where
  /// they lead to others: builds remove their folders and make them anew.
  /// - Returns: what is untrue by that.
  func lookAtPlaces(_ volume: Volume) -> [Invalidation] {
    var hasChanged = false
    // Once more with the new watches, since it may have changed before they were set; but not for ever.
    for _ in 0..<4 {
      let changed = places.indices.filter { lookAtPlace(of: $0, volume) }
      if changed.isEmpty { break }
      hasChanged = true
      watches.removePathWatches()
      watchPlaces()
    }
    return hasChanged ? [Invalidation(subject: .subtree(.root))] : []
  }

  private func lookAtPlace(of layer: Int, _ volume: Volume) -> Bool {
    if let archive = archives[layer] { return lookAtArchive(archive, layer, volume) }
    guard let mount = mount(of: layer), case .directory(let directoryLayer) = volume.stack.layers[layer]
    else { return false }
    var fault: String?
    var isAnother = false
    do throws(Errno) {
      switch try directoryLayer.reopen(mount: mount.id) {
      case .same: break
      case .another: isAnother = true
      // Our own mount, maybe; whether the layer's is gone, the mount table tells.
      case .elsewhere: return false
      }
    } catch {
      // No telling before Linux 5.8.
      if error == .noFunction { return false }
      let isDeleted = (try? directoryLayer.root.attributes().links) == 0
      fault = isDeleted ? LayerRootMonitor.deleted : LayerRootMonitor.movedAway
    }
    if !isAnother, fault == self.fault(of: layer) { return false }
    note(fault: fault, of: layer)
    return true
  }
}
