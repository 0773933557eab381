import Fuse
import Posix

/// A name of a directory. Node numbers are never reused, so a key does not outlive its directory.
struct EntryKey: Hashable {
  let parent: NodeID
  let name: [UInt8]

  init(parent: NodeID, name: [UInt8]) {
    self.parent = parent
    self.name = name
  }

  init(parent: NodeID, _ name: CName) { self.init(parent: parent, name: [UInt8](bytesOf: name)) }
}
