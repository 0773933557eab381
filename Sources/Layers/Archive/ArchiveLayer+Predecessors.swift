import Posix

/// What a process takes over from the one that served the mount before.
extension ArchiveLayer {
  /// Goes on with the files that a predecessor had open, and closes its former states that none of them needs. What the
  /// kernel may have of large ones is distrusted: whether it was verified is not known any more.
  /// - Parameter known: the inode numbers of files that were read.
  /// - Returns: the files, by inode number: their readers keep them when the archive is replaced.
  public func takeFormerFiles(known: Set<UInt64>) -> [UInt64: LayerFile] {
    let present = current
    var missing = known
    var files: [UInt64: LayerFile] = [:]
    for node in present.tree.nodes where !node.isFolder && missing.remove(node.inode) != nil {
      if node.size > ArchiveContent.smallSize || !node.hasChecksum {
        served.insert(node.inode, from: present.source.generation, isVerified: false)
      }
      if let content = content(of: node, in: present) { files[node.inode] = LayerFile(content) }
    }
    let former = former.withLock { former in
      defer { former = [] }
      return former
    }
    for index in former {
      for node in index.tree.nodes where !node.isFolder && missing.remove(node.inode) != nil {
        files[node.inode] = LayerFile(detachedContent(of: node, in: index))
      }
    }
    return files
  }

  private func detachedContent(of node: ArchiveNode, in index: ArchiveIndex) -> ArchiveContent {
    let content = makeContent(of: node, in: index)
    content.detach()
    return content
  }
}
