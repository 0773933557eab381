import Fuse
import Layers
import Posix

/// A directory and those in it, whose nodes stay known as long as this object, also those that the kernel has not looked up.
final class HeldTree {
  /// A file of a layer below.
  struct FileBelow {
    let name: [UInt8]
    let layer: Int
    let attributes: FileStatus
  }

  private let store: NodeStore
  let root: NodeID
  /// Each directory behind the one that it is in.
  private(set) var nodes: [NodeID] = []
  private var known: Set<NodeID> = []

  /// - Parameter directory: what the name was found to be.
  init(_ store: NodeStore, at key: EntryKey, _ directory: MergedDirectory) throws(Errno) {
    self.store = store
    let above = try store.merged(of: key.parent)
    root = try withCName(key.name) { name throws(Errno) in
      try store.lookUpDirectory(name, in: key.parent, above, directory).number
    }
    hold(root)
  }

  deinit { for node in nodes.reversed() { store.forget(node, lookups: 1) } }

  /// Keeps a node that was looked up.
  private func hold(_ node: NodeID) {
    if known.insert(node).inserted { nodes.append(node) } else { store.forget(node, lookups: 1) }
  }

  /// Calls the body with each directory, and the files of layers below in it, before those that are in it. What vanishes
  /// meanwhile is passed over. Not recursive, since a tree may be deeper than the thread's stack.
  /// - Throws: EXDEV where a layer below has failed, for tables of strings that are merged, or if the upper layer has several
  ///   directories of the root's name; what the body throws.
  func forEachDirectory(
    _ body: (NodeID, MergedDirectory, [FileBelow]) throws(Errno) -> Void
  ) throws(Errno) {
    var pending = [root]
    while let node = pending.popLast() {
      do throws(Errno) {
        let merged = try store.merged(of: node)
        let hasTwins = node == root && merged.parts.dropFirst().contains { $0.layer == 0 }
        if hasTwins || merged.missing != nil { throw .crossDeviceLink }
        let (files, directories) = try contents(of: merged, node)
        try body(node, merged, files)
        pending += directories
      } catch {
        let isGone = error == .noSuchFileOrDirectory || error == .staleFileHandle
        if node == root || !isGone { throw error }
      }
    }
  }

  private func contents(
    of merged: MergedDirectory, _ node: NodeID
  ) throws(Errno) -> (files: [FileBelow], directories: [NodeID]) {
    let listing = try merged.list()
    var (files, directories): ([FileBelow], [NodeID]) = ([], [])
    let mergesTables = store.stack.tables != nil
    for item in listing.items where item.kind == .directory || item.layer != 0 || mergesTables {
      let bytes = listing.name(of: item)
      // It would have to be merged in the upper layer, with keys of layers below.
      if mergesTables, item.kind == .regular, TableName.isTable(bytes, foldsNames: merged.foldsNames) {
        throw .crossDeviceLink
      }
      try withCName(bytes) { name throws(Errno) in
        switch try merged.lookup(name, isLikelyDirectory: item.kind == .directory) {
        case .directory(let directory, _):
          let inner = try store.lookUpDirectory(name, in: node, merged, directory).number
          hold(inner)
          directories.append(inner)
        case .file(let layer, let attributes) where layer != 0:
          files.append(FileBelow(name: bytes, layer: layer, attributes: attributes))
        default: break
        }
      }
    }
    return (files, directories)
  }
}
