import Fuse
import Layers
import Posix

extension NodeStore {
  /// The attributes as the mount shows them.
  @inline(__always)
  func shown(_ status: FileStatus) -> FileStatus { shownOwners.map { $0.shown(status) } ?? status }

  /// The attributes, in its layer, of what a node is.
  func ownAttributes(of node: NodeID) throws(Errno) -> FileStatus {
    if try isDirectory(node) { return try merged(of: node).attributeSource.attributes() }
    if let file = try presentFile(of: node) { return try file.attributes() }
    return try withLocation(of: node) { directory, name, identity throws(Errno) in
      try directory.attributes(of: name, identity: identity)
    }
  }
}
