import Fuse
import Posix

/// The nodes of the directories below `rsrc:`.
///
/// Such a directory is not one of the bundle's: it stands for several (the unlocalized one and those of the
/// localizations), and the kernel allows no directory in two places. So it has a node of its own, identified by its
/// path below the resource directory. Files have the nodes that they have in the merged view.
///
/// Invariants: a directory is kept while `lookups` is above 0, the root always; `nodes` has exactly the directories.
struct ResourceDirectoryNodes {
  private struct Directory {
    let path: [[UInt8]]
    /// As it was reported last.
    var inodeNumber: UInt64
    var lookups: UInt64
  }

  /// Set in the numbers of these nodes and in no other's: generations in a `NodeTable` are smaller.
  private static let mark: UInt64 = 1 << 62
  static let root = NodeID(rawValue: mark | 1)

  private var directories: [NodeID: Directory]
  private var nodes: [[[UInt8]]: NodeID] = [[]: root]
  private var last = root.rawValue

  private var record: ResourceDirectoryRecord?

  /// - Parameter record: what a predecessor has left there is restored. How often the kernel knows those directories is
  ///   not, so they are kept.
  init(root: UInt64, record: ResourceDirectoryRecord? = nil) {
    self.record = record
    directories = [Self.root: Directory(path: [], inodeNumber: root, lookups: 0)]
    for entry in record?.all ?? [] {
      directories[entry.node] = Directory(path: entry.path, inodeNumber: entry.inodeNumber, lookups: 1 << 62)
      nodes[entry.path] = entry.node
      last = max(last, entry.node.rawValue)
    }
  }

  static func contain(_ node: NodeID) -> Bool { node.rawValue & (mark | 1 << 63) == mark }

  var count: Int { directories.count }

  /// - Throws: ESTALE for an unknown node.
  func path(of node: NodeID) throws(Errno) -> [[UInt8]] {
    guard let directory = directories[node] else { throw .staleFileHandle }
    return directory.path
  }

  func inodeNumber(of node: NodeID) throws(Errno) -> UInt64 {
    guard let directory = directories[node] else { throw .staleFileHandle }
    return directory.inodeNumber
  }

  /// The inode number of the directory above, as it was reported last; nil after its forget.
  func inodeNumber(above path: [[UInt8]]) -> UInt64? {
    nodes[path.dropLast()].flatMap { directories[$0]?.inodeNumber }
  }

  /// The node of a path, created if necessary, with one lookup more.
  mutating func lookUp(_ path: [[UInt8]], inodeNumber: UInt64) -> NodeID {
    if let number = nodes[path] {
      directories[number]?.lookups += 1
      directories[number]?.inodeNumber = inodeNumber
      return number
    }
    last += 1
    let number = NodeID(rawValue: last)
    directories[number] = Directory(path: path, inodeNumber: inodeNumber, lookups: 1)
    nodes[path] = number
    record?.add(ResourceDirectoryRecord.Entry(node: number, inodeNumber: inodeNumber, path: path)) {
      directories.filter { $0.key != Self.root }.map {
        ResourceDirectoryRecord.Entry(node: $0.key, inodeNumber: $0.value.inodeNumber, path: $0.value.path)
      }
    }
    return number
  }

  mutating func forget(_ node: NodeID, lookups: UInt64) {
    guard var directory = directories[node] else { return }
    directory.lookups -= min(lookups, directory.lookups)
    if directory.lookups > 0 || node == Self.root {
      directories[node] = directory
    } else {
      directories[node] = nil
      nodes[directory.path] = nil
    }
  }
}
