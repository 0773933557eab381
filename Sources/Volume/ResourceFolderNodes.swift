import Fuse
import Posix

/// The nodes of the folders below `rsrc:`.
///
/// A folder there is not the directory of the bundle: it stands for one in several places (the unlocalized
/// one, those of the localizations), and Linux wants no directory in two places. So it has a node of its own,
/// which is its path below the resource folder. Files have none: they are found as the nodes that they are.
///
/// Invariants: a folder is kept while `lookups` is above 0, the topmost always; `numbers` has exactly the
/// folders.
struct ResourceFolderNodes {
  private struct Folder {
    let path: [[UInt8]]
    var lookups: UInt64
  }

  /// Set in the numbers of these nodes, and in no other's: those count generations there.
  private static let mark: UInt64 = 1 << 62
  /// The folder `rsrc:` itself.
  static let top = NodeID(rawValue: mark | 1)

  private var folders = [top: Folder(path: [], lookups: 0)]
  private var numbers: [[[UInt8]]: NodeID] = [[]: top]
  private var last = top.rawValue

  /// Whether a node is one of these.
  static func contain(_ node: NodeID) -> Bool { node.rawValue & (mark | 1 << 63) == mark }

  /// How many there are.
  var count: Int { folders.count }

  /// The path of a folder.
  /// - Throws: ESTALE for a number that none has.
  func path(of node: NodeID) throws(Errno) -> [[UInt8]] {
    guard let folder = folders[node] else { throw .stale }
    return folder.path
  }

  /// The folder of a path, made if need be, with one lookup more.
  mutating func lookUp(_ path: [[UInt8]]) -> NodeID {
    if let number = numbers[path] {
      folders[number]?.lookups += 1
      return number
    }
    last += 1
    let number = NodeID(rawValue: last)
    folders[number] = Folder(path: path, lookups: 1)
    numbers[path] = number
    return number
  }

  /// Takes lookups back.
  mutating func forget(_ node: NodeID, lookups: UInt64) {
    guard var folder = folders[node] else { return }
    folder.lookups -= min(lookups, folder.lookups)
    if folder.lookups > 0 || node == Self.top {
      folders[node] = folder
    } else {
      folders[node] = nil
      numbers[folder.path] = nil
    }
  }
}
