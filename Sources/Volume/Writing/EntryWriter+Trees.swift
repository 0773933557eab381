import Fuse
import Layers
import Posix

/// Directories of layers below that are about to be renamed.
///
/// All that such a directory shows becomes the upper layer's, by the same steps as when it is changed: so programs keep what
/// they have open, others may change the tree meanwhile, and at each step the mount shows the same. The content is copied
/// before, in the work folder. Then the directory is made opaque, and is one that can be renamed.
extension EntryWriter {
  /// How often a tree is copied in which programs make entries in layers below meanwhile.
  private static let mostPasses = 8

  /// - Parameter found: what is about to be renamed.
  /// - Returns: whether anything was copied, so that the entries have to be looked up again.
  /// - Throws: EXDEV if `rename_copy` does not permit it, before anything is copied; EPERM if the flags of chattr(1) forbid
  ///   to change what is in a directory; errors of the upper layer.
  func copyTreesUp(_ found: [(entry: Entry?, key: EntryKey)], by writer: EntryOwner) throws(Errno) -> Bool {
    var trees: [HeldTree] = []
    for (entry, key) in found {
      guard case .directory(let directory, _)? = entry, !directory.isOwn else { continue }
      if renameCopy == 0 { throw .crossDeviceLink }
      trees.append(try HeldTree(store, at: key, directory))
    }
    if trees.isEmpty { return false }
    var bytesLeft = renameCopy
    for tree in trees { try measure(tree, &bytesLeft) }
    let staged = try StagedCopies(in: upper, atMost: renameCopy)
    defer { staged.close() }
    for tree in trees { try stage(tree, staged, writer) }
    try staged.synchronize()
    for tree in trees { try publish(tree, staged, writer) }
    return true
  }

  /// The bytes that an entry counts for at least: also an empty one takes a block, and time.
  private static let smallestEntry: UInt64 = 4096

  /// - Throws: EXDEV if the entries count for more bytes than are left.
  private func measure(_ tree: HeldTree, _ bytesLeft: inout UInt64) throws(Errno) {
    var left = bytesLeft
    func take(_ size: UInt64) throws(Errno) {
      let size = max(size, Self.smallestEntry)
      guard size <= left else { throw .crossDeviceLink }
      left -= size
    }
    try tree.forEachDirectory { _, merged, files throws(Errno) in
      if !merged.isInUpperLayer, try !merged.attributeSource.attributes().permits(.change) {
        throw .notPermitted
      }
      try take(0)
      for file in files {
        guard file.attributes.permits(.change) else { throw .notPermitted }
        try take(file.attributes.kind == .regular ? file.attributes.size : 0)
      }
    }
    bytesLeft = left
  }

  private func stage(_ tree: HeldTree, _ staged: StagedCopies, _ writer: EntryOwner) throws(Errno) {
    try tree.forEachDirectory { _, merged, files throws(Errno) in
      for file in files where file.attributes.kind == .regular {
        try withCName(file.name) { name throws(Errno) in
          let identity = file.attributes.identity
          guard let part = merged.part(of: file.layer, with: name, identity) else { return }
          do throws(Errno) { try staged.add(name, from: part, identity: identity, as: writer) } catch {
            // It was replaced meanwhile, and is copied when it is made the upper layer's.
            if error != .noSuchFileOrDirectory && error != .staleFileHandle { throw error }
          }
        }
      }
    }
  }

  /// Makes all that a tree shows the upper layer's, until nothing of another layer is found in it.
  private func publish(_ tree: HeldTree, _ staged: StagedCopies, _ writer: EntryOwner) throws(Errno) {
    for _ in 0..<Self.mostPasses {
      var isWhole = true
      try tree.forEachDirectory { node, merged, files throws(Errno) in
        if !merged.isInUpperLayer || !files.isEmpty { isWhole = false }
        let directory = try copyUp.directory(node)
        for file in files { try publish(file, in: node, staged, writer) }
        try directory.keepShownTime()
      }
      if isWhole { return try cover(tree) }
    }
    throw .resourceBusy
  }

  private func publish(
    _ file: HeldTree.FileBelow, in directory: NodeID, _ staged: StagedCopies, _ writer: EntryOwner
  ) throws(Errno) {
    let key = EntryKey(parent: directory, name: file.name)
    do throws(Errno) {
      try withCName(file.name) { name throws(Errno) in
        try copyFileUp(.file(layer: file.layer, file.attributes), name, key, writer, staged)
      }
    } catch {
      // Another request, or a program in a layer, was faster: the next pass finds what there is now.
      let isOther = [.noSuchFileOrDirectory, .staleFileHandle, .fileExists].contains(error)
      if !isOther { throw error }
    }
  }

  /// Makes the tree the upper layer's alone. What is visible stays the same, so the kernel's caches stay true.
  private func cover(_ tree: HeldTree) throws(Errno) {
    try upper.coverBelow(try copyUp.directory(tree.root).top)
    if store.watcher == nil { return }
    for node in tree.nodes {
      _ = try store.refreshParts(of: node, isForced: false, readsWhiteouts: false)
    }
  }
}

extension MergedDirectory {
  /// Whether no layer but the upper one takes part in it, so that it can be renamed.
  fileprivate var isOwn: Bool { parts.count == 1 && missing == nil && isInUpperLayer }
}
