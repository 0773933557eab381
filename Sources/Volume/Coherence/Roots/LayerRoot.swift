import Layers
import Posix

struct LayerRoot: Sendable {
  let path: [UInt8]
  /// None for a layer on a server.
  let components: [[UInt8]]
  /// The mount that held the path when the layer was opened; nil if the mount table did not say.
  let mount: MountTableEntry?
  /// Whether the layer is a private clone of its mount, in which other mounts are not visible.
  let isPrivateClone: Bool

  /// - Parameters:
  ///   - mountPoint: where this file system is mounted, or will be: a layer can be what lies beneath.
  ///   - mounts: all there are.
  init(_ layer: Layer, mountPoint: [UInt8], _ mounts: [MountTableEntry]) {
    path = layer.backingPath
    isPrivateClone = layer.isPrivateClone
    if layer.archive?.remote != nil {
      (components, mount) = ([], nil)
      return
    }
    components = path.split(separator: UInt8(ascii: "/")).map { Array($0) }
    mount = MountTableEntry.containing(path, in: mounts) { !($0.isBundlefs && $0.mountPoint == mountPoint) }
  }

  func parent(ofComponent index: Int) -> [UInt8] {
    [UInt8(ascii: "/")] + components[..<index].joinedPath
  }

  /// What an event of a layer's root itself means for the layer; nil if nothing.
  static func fault(_ mask: InotifyEvent.Mask) -> String? {
    if mask.contains(.deletedSelf) { return deleted }
    if mask.contains(.movedSelf) { return movedAway }
    if mask.contains(.unmounted) { return unmounted }
    return nil
  }

  static let deleted = "its directory was deleted"
  static let absent = "its path does not lead to a directory, so it is left out"
  static let movedAway = "its directory was moved away"
  static let unmounted = "its file system was unmounted"
}

final class LayerFaults: Sendable {
  private let faults = Locked<[Int: String]>([:])

  subscript(layer: Int) -> String? {
    get { faults.withLock { $0[layer] } }
    set { faults.withLock { $0[layer] = newValue } }
  }

  var isEmpty: Bool { faults.withLock { $0.isEmpty } }
}
