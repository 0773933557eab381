import Fuse
import Layers
import Posix

/// Which parts a directory consists of: found once, watched, and kept until a change says otherwise.
extension Volume {
  /// A directory's parts as they are now, with watches on them.
  struct Found {
    /// nil where no layer has the directory any more.
    let merged: MergedDirectory?
    var watches: [WatchDescriptor] = []
    var isCovered: Bool
    var fallback: UncachedReason?

    var parts: [PartIdentity] { merged?.parts.map(PartIdentity.init) ?? [] }
  }

  /// The merged directory of a node.
  /// - Parameter hint: what its parent was just found to have under its name.
  /// - Throws: ENOENT where no layer has it any more; ENOTDIR for another kind of node.
  func merged(of node: NodeID, hint: MergedDirectory? = nil) throws(Errno) -> MergedDirectory {
    try merged(of: node, hint: hint, looksAbove: true)
  }

  /// - Parameter looksAbove: whether the directories above are looked at first, if need be.
  private func merged(
    of node: NodeID, hint: MergedDirectory?, looksAbove: Bool
  ) throws(Errno) -> MergedDirectory {
    guard let coherence else { return try directory(at: path(of: node)) }
    var hint = hint
    while true {
      let (present, version, evicted) = try table.withLock {
        table throws(Errno) -> (MergedDirectory?, Int, [AnyObject]) in
        let state = try Self.state(of: node, table)
        // Where no watch would tell of its coming, it is looked for each time.
        if state.parts?.isEmpty == true, state.isCovered { throw .noSuchFileOrDirectory }
        let evicted = state.merged == nil ? [] : table.touchDirectory(try table.slot(of: node))
        return (state.merged, state.version, evicted)
      }
      withExtendedLifetime(evicted) {}
      if let present { return present }
      if hint == nil, looksAbove { try lookAtAncestors(of: node) }
      do throws(Errno) {
        let found = try find(node, hint: hint, coherence)
        if let merged = try keep(found, of: node, version: version, coherence) { return merged }
      } catch {
        giveBackIfForgotten(node)
        throw error
      }
      // A change came in between, so that the hint is older.
      hint = nil
    }
  }

  /// Has the directories above looked at, from the top down: each then finds the one above it, and none asks
  /// for a stack as deep as the tree.
  /// - Throws: what is wrong with the first of them that cannot be looked at; below it nothing can.
  func lookAtAncestors(of node: NodeID) throws(Errno) {
    let missing = table.withLock { table -> [NodeID] in
      guard let slot = try? table.slot(of: node) else { return [] }
      var missing: [NodeID] = []
      var ancestor = table[slot].parent
      while ancestor != 0, let state = table[ancestor].directory, state.merged == nil {
        missing.append(table.number(of: ancestor))
        ancestor = table[ancestor].parent
      }
      return missing
    }
    for ancestor in missing.reversed() { _ = try merged(of: ancestor, hint: nil, looksAbove: false) }
  }

  /// - Returns: nil if a change came in between.
  private func keep(
    _ found: Found, of node: NodeID, version: Int, _ coherence: LayerWatcher
  ) throws(Errno) -> MergedDirectory? {
    let (merged, evicted, isOutdated) = try table.withLock {
      table throws(Errno) -> (MergedDirectory?, [AnyObject], Bool) in
      let state = try Self.state(of: node, table)
      if state.parts == nil {
        if state.version != version { return (nil, [], false) }
        Self.set(found, in: state)
      } else if state.parts != found.parts {
        // The change that made the difference is on its way, and will be carried out in full.
        return (state.merged ?? found.merged, [], true)
      } else if state.merged == nil {
        state.merged = found.merged
      }
      guard state.merged != nil else { return (nil, [], false) }
      return (state.merged, table.touchDirectory(try table.slot(of: node)), false)
    }
    withExtendedLifetime(evicted) {}
    if isOutdated { queue.add([Invalidation(subject: .parts(node))]) }
    if !found.isCovered { coherence.noteFallback() }
    if merged == nil, found.merged == nil { throw .noSuchFileOrDirectory }
    return merged
  }

  static func set(_ found: Found, in state: DirectoryState) {
    state.parts = found.parts
    state.merged = found.merged
    state.isCovered = found.isCovered
    state.uncachedReason = found.fallback
  }

  /// Looks at the layers. What decides which parts there are lies in part in the parts themselves, so it is
  /// looked at again once they are watched. Watches that prove to be needless are given back later: somebody
  /// else may rely on them already.
  func find(_ node: NodeID, hint: MergedDirectory?, _ coherence: LayerWatcher) throws(Errno) -> Found {
    let (isCovered, lowest) = try parent(of: node)
    var merged = hint
    if merged == nil { merged = try lookAt(node) }
    while true {
      var found = Found(merged: merged, isCovered: isCovered)
      guard let parts = merged?.parts else { return found }
      for part in parts { watch(part, for: node, &found, coherence) }
      // Which layers have the name is told by the directory above. Below the lowest part there is nothing that
      // a mark in it could hide; in those above it a mark may have come before the watch.
      if isCovered, parts.last?.layer == lowest, try merged?.hasOpaqueParts() == false { return found }
      let again = try lookAt(node)
      if again?.parts.map(PartIdentity.init) == found.parts { return found }
      merged = again
    }
  }

  private func watch(
    _ part: LayerDirectory, for node: NodeID, _ found: inout Found, _ coherence: LayerWatcher
  ) {
    do throws(Errno) {
      if let watch = try coherence.watches.watch(part, for: node) { found.watches.append(watch) }
    } catch {
      found.isCovered = false
      let reason =
        error == .noSpace
        ? "no more inotify watches: raise the sysctl fs.inotify.max_user_watches"
        : "cannot be watched: \(error)"
      found.fallback = found.fallback ?? UncachedReason(layer: part.layer, reason: reason)
    }
    let fault = node == .root ? silence[part.layer] ?? coherence.fault(of: part.layer) : silence(of: part)
    if let fault {
      found.isCovered = false
      found.fallback = found.fallback ?? UncachedReason(layer: part.layer, reason: fault)
    }
  }

  /// Why nobody tells of changes in a part that lies on another file system than its layer's root: without a
  /// private clone, mounts inside a layer are seen.
  private func silence(of part: LayerDirectory) -> String? {
    if part.isInArchive { return nil }
    if stack.layers[part.layer].root.identity.device == part.identity.device { return nil }
    guard let type = try? part.unwatchableFileSystem() else { return nil }
    return Self.silence(of: type)
  }

  static func silence(of fileSystem: String) -> String { "\(fileSystem) does not tell of all changes" }

  private func lookAt(_ node: NodeID) throws(Errno) -> MergedDirectory? {
    if node == .root { return try stack.root() }
    let (parent, name) = try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      return (table.number(of: table[slot].parent), table.name(of: slot))
    }
    let merged: MergedDirectory
    do throws(Errno) { merged = try self.merged(of: parent, hint: nil, looksAbove: false) } catch {
      if error == .noSuchFileOrDirectory { return nil }
      throw error
    }
    let entry = try withCName(name) { name throws(Errno) in
      try merged.lookup(name, isLikelyDirectory: true)
    }
    guard case .directory(let found, _) = entry else { return nil }
    return found
  }

  /// Whether a directory's parent is covered, and the lowest layer that takes part in it.
  private func parent(of node: NodeID) throws(Errno) -> (isCovered: Bool, lowest: Int?) {
    if node == .root { return (true, stack.layers.count - 1) }
    return try table.withLock { table throws(Errno) in
      let state = table[table[try table.slot(of: node)].parent].directory
      return (state?.isCovered ?? false, state?.parts?.last?.layer)
    }
  }

  /// Whether every change to a directory, and to the files in it, is told by a watch.
  func isCovered(_ directory: NodeID) -> Bool {
    table.withLock { table in (try? Self.state(of: directory, table))?.isCovered ?? false }
  }

  /// A directory's `version`.
  func version(of directory: NodeID) -> Int {
    table.withLock { table in (try? Self.state(of: directory, table))?.version ?? 0 }
  }

  /// Whether no change to a directory was told since a version, and every change is told.
  func isUnchanged(_ directory: NodeID, since version: Int) -> Bool {
    if coherence == nil { return false }
    return table.withLock { table in
      guard let state = try? Self.state(of: directory, table) else { return false }
      return state.isCovered && state.version == version
    }
  }

  static func state(of node: NodeID, _ table: NodeTable) throws(Errno) -> DirectoryState {
    guard let state = table[try table.slot(of: node)].directory else { throw .notDirectory }
    return state
  }
}
