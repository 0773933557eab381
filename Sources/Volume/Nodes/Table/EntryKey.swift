import Fuse
import Posix

/// A name of a directory. Node numbers are never reused, so a key does not outlive its directory.
struct EntryKey: Hashable {
  let parent: NodeID
  let name: [UInt8]
}

extension EntryKey {
  init(parent: NodeID, _ name: CName) { self.init(parent: parent, name: [UInt8](bytesOf: name)) }
}
