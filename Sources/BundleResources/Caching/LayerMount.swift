import CLibrary
import Posix

/// A mount on the path to a layer.
struct LayerMount: Equatable {
  private let id: Int
  private let mountPoint: [UInt8]

  /// The mounts on the paths to layers, oldest first.
  /// - Parameter layers: absolute paths without symbolic links.
  /// - Throws: EXDEV if something is mounted inside a layer; ENOENT without a mount table.
  static func all(of layers: [[UInt8]]) throws(Errno) -> [LayerMount] {
    let table = MountTableEntry.all()
    if table.isEmpty { throw .noSuchFileOrDirectory }
    var mounts: [LayerMount] = []
    for entry in table {
      if layers.contains(where: { $0 != entry.mountPoint && contains($0, entry.mountPoint) }) {
        throw Errno(rawValue: EXDEV)
      }
      guard layers.contains(where: { contains(entry.mountPoint, $0) }) else { continue }
      mounts.append(LayerMount(id: entry.id, mountPoint: entry.mountPoint))
    }
    return mounts
  }

  /// Whether a path is that of a directory or of something in it.
  private static func contains(_ directory: [UInt8], _ path: [UInt8]) -> Bool {
    let slash = UInt8(ascii: "/")
    return path.starts(with: directory)
      && (directory == [slash] || path.count == directory.count || path[directory.count] == slash)
  }
}
