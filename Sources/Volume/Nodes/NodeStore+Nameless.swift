import Fuse
import Layers
import Posix

/// Directories that were removed through the mount while programs stand in them.
extension NodeStore {
  /// nil for a directory with a name, and for one that has lost it under a predecessor.
  func namelessDirectory(_ node: NodeID) -> NamelessDirectory? {
    if !isWritable { return nil }
    return table.withLock { $0.namelessDirectory(node) }
  }

  /// Gives a directory that was removed other parts.
  func replaceRemovedDirectory(_ node: NodeID, by copy: MergedDirectory) {
    table.withLock { table in
      if let slot = try? table.slot(of: node) { table.namelessDirectories[slot]?.parts = copy }
    }
  }
}
