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
    /// As it was told last.
    var inodeNumber: UInt64
    var lookups: UInt64
  }

  /// Set in the numbers of these nodes, and in no other's: a `NodeTable`'s generations end before.
  private static let mark: UInt64 = 1 << 62
  /// The folder `rsrc:` itself.
  static let top = NodeID(rawValue: mark | 1)

  private var folders: [NodeID: Folder]
  private var numbers: [[[UInt8]]: NodeID] = [[]: top]
  private var last = top.rawValue

  /// - Parameter top: the inode number of the topmost.
  init(top: UInt64) { folders = [Self.top: Folder(path: [], inodeNumber: top, lookups: 0)] }

  /// Whether a node is one of these.
  static func contain(_ node: NodeID) -> Bool { node.rawValue & (mark | 1 << 63) == mark }

  /// How many there are.
  var count: Int { folders.count }

  /// The path of a folder.
  /// - Throws: ESTALE for a number that none has.
  func path(of node: NodeID) throws(Errno) -> [[UInt8]] {
    guard let folder = folders[node] else { throw .staleFileHandle }
    return folder.path
  }

  /// The inode number of a folder.
  /// - Throws: as `path`.
  func inodeNumber(of node: NodeID) throws(Errno) -> UInt64 {
    guard let folder = folders[node] else { throw .staleFileHandle }
    return folder.inodeNumber
  }

  /// The inode number of the folder above, as it was told last; nil where that was forgotten.
  func numberAbove(_ path: [[UInt8]]) -> UInt64? {
    numbers[path.dropLast()].flatMap { folders[$0]?.inodeNumber }
  }

  /// The folder of a path, made if need be, with one lookup more.
  mutating func lookUp(_ path: [[UInt8]], inodeNumber: UInt64) -> NodeID {
    if let number = numbers[path] {
      folders[number]?.lookups += 1
      folders[number]?.inodeNumber = inodeNumber
      return number
    }
    last += 1
    let number = NodeID(rawValue: last)
    folders[number] = Folder(path: path, inodeNumber: inodeNumber, lookups: 1)
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
