import Posix

/// The folders of an archive for the merge. A folder keeps its inode number as long as each new version has
/// a folder of its path.
extension ArchiveLayer {
  func node(_ name: CName, in folder: UInt64) -> (ArchiveNode, ArchiveIndex)? {
    let index = current
    guard let folder = index.folders[folder], let node = index.find(name, in: folder) else { return nil }
    return (index.tree[node], index)
  }

  /// - Parameter place: the folder's.
  func find(_ name: CName, in folder: UInt64, place: HiddenNames.Place?) -> LayerDirectory.Found {
    guard let (node, index) = node(name, in: folder) else { return .nothing }
    if node.isFolder {
      return .directory(directory(node.inode, place?.entering(name)), attributes(of: node, in: index))
    }
    return .file(attributes(of: node, in: index))
  }

  /// - Throws: ENOENT if the folder no longer exists.
  func folderAttributes(_ folder: UInt64) throws(Errno) -> FileStatus {
    let index = current
    guard let node = index.folders[folder] else { throw .noSuchFileOrDirectory }
    return attributes(of: index.tree[node], in: index)
  }

  /// The extended attributes of a folder; none if it no longer exists.
  func extendedAttributes(ofFolder folder: UInt64) -> [ArchivedAttribute] {
    let index = current
    return index.folders[folder].flatMap { index.attributes(ofNode: $0) }?.extended ?? []
  }

  /// Lists a folder; one that no longer exists is empty.
  func forEachEntry(in folder: UInt64, _ body: (DirectoryEntry) throws(Errno) -> Void) throws(Errno) {
    let index = current
    guard let folder = index.folders[folder] else { return }
    var node = UInt32(index.tree[folder].offset)
    while node != 0 {
      let entry = index.tree[node]
      try index.tree.withName(of: node) { name throws(Errno) in
        try body(
          DirectoryEntry(
            name: name, nameLength: Int(entry.nameLength), inode: entry.inode, kind: entry.kind))
      }
      node = entry.next
    }
  }
}
