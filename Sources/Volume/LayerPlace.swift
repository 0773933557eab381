import Fuse
import Layers
import Posix

/// Where a layer is: what can happen to it as a whole.
struct LayerPlace: Sendable {
  let path: [UInt8]
  /// The path's last name.
  let name: [UInt8]
  /// The mount that held the path at the beginning; nil if there was no telling.
  let mount: Int?
  /// Whether mounts inside the layer are out of sight.
  let isPrivateClone: Bool

  init(_ layer: DirectoryLayer) {
    path = layer.path
    name = Array(layer.path[((layer.path.lastIndex(of: UInt8(ascii: "/")) ?? -1) + 1)...])
    mount = MountTableEntry.holding(layer.path)?.id
    isPrivateClone = layer.isPrivateClone
  }

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

extension Coherence {
  /// inotify(7) tells of an unmount only when nobody holds the file system any more, and we do.
  func noteMounts() {
    let mounted = Set(MountTableEntry.all().map(\.id))
    for (layer, place) in places.enumerated() where fault(of: layer) == nil {
      guard let mount = place.mount, !mounted.contains(mount) else { continue }
      note(fault: LayerPlace.unmounted, of: layer)
      queue.add([Invalidation(subject: .subtree(.root))])
    }
    if noteInnerMounts() { queue.add([Invalidation(subject: .subtree(.root))]) }
  }

  /// Notes what is mounted inside the layers that are no private clones: a mount changes what is seen there,
  /// and no event tells.
  /// - Returns: whether that is something else than before.
  @discardableResult
  func noteInnerMounts() -> Bool {
    var hasChanged = false
    for (layer, place) in places.enumerated() where !place.isPrivateClone {
      let folder = place.path + [UInt8(ascii: "/")]
      let inside = MountTableEntry.all().filter { $0.mountPoint.starts(with: folder) }
      if note(innerMounts: Set(inside.map(\.id)), of: layer) { hasChanged = true }
    }
    return hasChanged
  }

  /// Looks whether a layer's path still leads to the directory that the layer is. If it leads to another one,
  /// the layer is that from now on, as for a build that makes its folder anew.
  /// - Returns: what is untrue by that.
  func lookAtPlace(of layer: Int, _ volume: Volume) -> [Invalidation] {
    let directoryLayer = volume.stack.layers[layer]
    // Whatever was mounted above, our own mount among it, is not the layer.
    guard MountTableEntry.holding(directoryLayer.path)?.id == places[layer].mount else { return [] }
    var fault: String?
    var isAnother = false
    do throws(Errno) { isAnother = try directoryLayer.reopen() } catch {
      fault = volume.isDeleted(layer) ? LayerPlace.deleted : LayerPlace.movedAway
    }
    if !isAnother, fault == self.fault(of: layer) { return [] }
    note(fault: fault, of: layer)
    return [Invalidation(subject: .subtree(.root))]
  }
}
