import Glibc
import Posix
import TestSupport

/// Where a layer is laid, and what the folders above it show for as long as it is mounted.
struct Laying {
  /// The names from the mount's root.
  let place: [ByteString]
  /// The layer's root when the mount opened it.
  let root: PlannedMetadata

  /// One or two of the names.
  static func choose(
    _ names: [ByteString], over root: PlannedMetadata, _ random: inout SplitMix64
  ) -> Laying {
    Laying(place: (0..<random.number(1...2)).map { _ in random.pick(names) }, root: root)
  }

  /// A layer as `substitution` takes it.
  func name(of layer: ByteString) -> ByteString { place.reduce(layer + "@") { $0 / $1 } }
}

extension PlannedLayer {
  /// The layer in the folders above it.
  func laid(_ laying: Laying) -> PlannedLayer {
    var layer = self
    for name in laying.place.reversed() {
      let metadata = PlannedMetadata(
        permissions: 0o755, owner: geteuid(), group: getegid(), modified: laying.root.modified)
      layer.root = PlannedDirectory(
        metadata: metadata, entries: [name: .directory(layer.root)], isAboveLayer: true)
    }
    return layer
  }
}
