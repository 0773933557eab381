import Fuse
import Layers
import Posix

/// Which parts a directory consists of: found once, watched, and kept until a change says otherwise.
extension Volume {
  /// A directory's parts as they are now, with watches on them.
  private struct Found {
    /// nil where no layer has the directory any more.
    let merged: MergedDirectory?
    var watches: [WatchNumber] = []
    var isCovered: Bool
    var fallback: Fallback?

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
        if state.parts?.isEmpty == true, state.isCovered { throw .noEntry }
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
  private func lookAtAncestors(of node: NodeID) throws(Errno) {
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
    _ found: Found, of node: NodeID, version: Int, _ coherence: Coherence
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
    if merged == nil, found.merged == nil { throw .noEntry }
    return merged
  }

  private static func set(_ found: Found, in state: DirectoryState) {
    state.parts = found.parts
    state.merged = found.merged
    state.isCovered = found.isCovered
    state.fallback = found.fallback
  }

  /// Looks at the layers. What decides which parts there are lies in part in the parts themselves, so it is
  /// looked at again once they are watched. Watches that prove to be needless are given back later: somebody
  /// else may rely on them already.
  private func find(_ node: NodeID, hint: MergedDirectory?, _ coherence: Coherence) throws(Errno) -> Found {
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

  private func watch(_ part: LayerDirectory, for node: NodeID, _ found: inout Found, _ coherence: Coherence) {
    do throws(Errno) {
      if let watch = try coherence.watches.watch(part, for: node) { found.watches.append(watch) }
    } catch {
      found.isCovered = false
      let reason =
        error == .noSpace
        ? "no more inotify watches: raise the sysctl fs.inotify.max_user_watches"
        : "cannot be watched: \(error)"
      found.fallback = found.fallback ?? Fallback(layer: part.layer, reason: reason)
    }
    let fault = node == .root ? silence[part.layer] ?? coherence.fault(of: part.layer) : silence(of: part)
    if let fault {
      found.isCovered = false
      found.fallback = found.fallback ?? Fallback(layer: part.layer, reason: fault)
    }
  }

  /// Why nobody tells of changes in a part that lies on another file system than its layer's root: without a
  /// private clone, mounts inside a layer are seen.
  private func silence(of part: LayerDirectory) -> String? {
    if part.isInArchive { return nil }
    if stack.layers[part.layer].root.identity.device == part.identity.device { return nil }
    guard let type = try? part.silentFileSystem() else { return nil }
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
      if error == .noEntry { return nil }
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

  private static func state(of node: NodeID, _ table: NodeTable) throws(Errno) -> DirectoryState {
    guard let state = table[try table.slot(of: node)].directory else { throw .notDirectory }
    return state
  }
}

// MARK: - For the invalidator

extension Volume {
  /// What came and went with a directory's parts.
  struct PartsChange {
    /// Parts of which the kernel knows nothing, or may know anything.
    let arrived: [LayerDirectory]
    /// Layers whose part went.
    var departed: Set<Int> = []
    /// Whether all below may be anything.
    let isForced: Bool
  }

  /// Looks at a directory's parts anew, and from now on answers by them.
  /// - Returns: nil if nothing in it was cached, or if they are the same parts.
  func refreshParts(of node: NodeID, isForced: Bool) -> PartsChange? {
    guard let coherence else {
      // Nothing is kept but by the kernel, which may keep anything.
      if !isForced { return nil }
      return PartsChange(arrived: (try? merged(of: node).parts) ?? [], isForced: true)
    }
    let isCached = table.withLock { table in
      guard let state = try? Self.state(of: node, table) else { return false }
      state.version += 1
      return state.parts != nil
    }
    guard isCached else { return nil }
    let found: Found
    do throws(Errno) {
      do throws(Errno) { try lookAtAncestors(of: node) } catch {
        // Where there is nothing above, there is nothing here.
        if error != .noEntry { throw error }
      }
      found = try find(node, hint: nil, coherence)
    } catch {
      giveBackIfForgotten(node)
      return forgetParts(of: node)
    }
    if !found.isCovered { coherence.noteFallback() }
    var isForgotten = false
    let (change, former) = table.withLock { table -> (PartsChange?, [AnyObject]) in
      guard let slot = try? table.slot(of: node), let state = table[slot].directory else {
        isForgotten = true
        return (nil, [])
      }
      let (parts, wasCovered) = (state.parts ?? [], state.isCovered)
      var former: [AnyObject] = []
      if let held = table.release(slot) { former.append(held) }
      Self.set(found, in: state)
      if found.merged != nil { former += table.touchDirectory(slot) }
      if parts == found.parts, !isForced, wasCovered == found.isCovered { return (nil, former) }
      let isForced = isForced || wasCovered != found.isCovered
      let arrived = found.merged?.parts.filter { isForced || !parts.contains(PartIdentity($0)) } ?? []
      let departed = Set(Set(parts).subtracting(found.parts).map(\.layer))
      return (PartsChange(arrived: arrived, departed: departed, isForced: isForced), former)
    }
    // Before the former directories are let go: their end is none of the new ones'.
    coherence.watches.stop(node, except: isForgotten ? [] : found.watches)
    withExtendedLifetime(former) {}
    return change
  }

  /// A directory that cannot be looked at just now: the next request in it will try anew.
  private func forgetParts(of node: NodeID) -> PartsChange {
    let (former, departed) = table.withLock { table -> (AnyObject?, [PartIdentity]) in
      guard let slot = try? table.slot(of: node), let state = table[slot].directory else { return (nil, []) }
      let parts = state.parts ?? []
      state.parts = nil
      state.version += 1
      state.isCovered = false
      return (table.release(slot), parts)
    }
    withExtendedLifetime(former) {}
    return PartsChange(arrived: [], departed: Set(departed.map(\.layer)), isForced: true)
  }

  /// The names by which the kernel may know entries of a directory.
  func knownNames(in directory: NodeID) -> Set<[UInt8]> {
    table.withLock { table in (try? table.slot(of: directory)).map { table.knownNames(in: $0) } ?? [] }
  }

  /// The directories directly below a directory that the kernel may know.
  func childDirectories(of directory: NodeID) -> [NodeID] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.childDirectories(of: slot).map { table.number(of: $0) }
    }
  }

  /// The directory of a name that the kernel may know.
  func childDirectory(named name: [UInt8], in directory: NodeID) -> NodeID? {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return nil }
      let child = table.directory(name, in: slot)
      return child == 0 ? nil : table.number(of: child)
    }
  }

  /// The files directly below a directory that the kernel may know.
  func files(in directory: NodeID) -> [NodeID] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.children(of: slot).filter { table[$0].directory == nil }.map { table.number(of: $0) }
    }
  }

  /// The files of a layer that the kernel may know by a name.
  func files(named name: [UInt8], in directory: NodeID, of layer: Int) -> [NodeID] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.nodes(named: name, in: slot)
        .filter { table[$0].directory == nil && Int(table[$0].layer) == layer }
        .map { table.number(of: $0) }
    }
  }

  /// The node of a file with several names, one of which is this, whether the kernel was told of it or not.
  func linkedFile(named name: [UInt8], in directory: NodeID, of layer: Int) -> NodeID? {
    guard let part = try? merged(of: directory).part(of: layer),
      let attributes = try? withCName(name, { name throws(Errno) in try part.attributes(of: name) }),
      attributes.links > 1
    else { return nil }
    return table.withLock { table in
      let slot = table.file(attributes.identity, layer: layer)
      return slot == 0 ? nil : table.number(of: slot)
    }
  }

  /// Notes that files which are being read cannot be reached any more by the parts of a directory that went.
  /// - Returns: the files.
  func detachReaders(in directory: NodeID, of layers: Set<Int>) -> [NodeID] {
    if layers.isEmpty || coherence == nil { return [] }
    return table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      let readers = table.children(of: slot).filter {
        table[$0].hasBegun && !table[$0].isDetached && layers.contains(Int(table[$0].layer))
      }
      for reader in readers { table.detach(reader, from: table.name(of: reader), in: slot) }
      return readers.map { table.number(of: $0) }
    }
  }

  /// Has a file that lost its name, but is being read, watched by itself.
  /// - Returns: whether it was not so far.
  func watchDetached(_ node: NodeID) -> Bool {
    let (isDetached, present) = table.withLock { table -> (Bool, OpenFile?) in
      guard let slot = try? table.slot(of: node) else { return (false, nil) }
      return (table[slot].isDetached, table[slot].file)
    }
    guard isDetached, coherence?.watches.watchesFile(node) == false else { return false }
    // One that made room for others may be reached by its path in the layer, also where that is hidden. What
    // is lost for good does not change.
    var file = present
    if file == nil { file = try? openFile(of: node) }
    return file.map { watchByItself(node, $0) } ?? false
  }

  /// Has an open file watched by itself, unless it is an archive's, which never changes; answers whether all is
  /// told of it.
  func watchByItself(_ node: NodeID, _ file: OpenFile) -> Bool {
    guard let watches = coherence?.watches else { return false }
    do throws(Errno) {
      let isWatched: Void? = try file.withWatchPath { path throws(Errno) in
        try watches.watchFile(node, at: path, follows: true)
      }
      if isWatched == nil { return true }
      giveBackIfForgotten(node)
      return true
    } catch {
      return false
    }
  }

  /// Gives back the watches of a node that was forgotten while they were set.
  func giveBackIfForgotten(_ node: NodeID) {
    guard let watches = coherence?.watches else { return }
    let isKnown = table.withLock { (try? $0.slot(of: node)) != nil }
    if isKnown { return }
    watches.stop(node)
    watches.stopFile(node)
  }

  /// How many directories are tried at a time; the limit of watches may stay for long.
  private static let retriesAtOnce = 64

  /// What is to be looked at again of what cannot be watched, and whether there is such a thing.
  func fallbacks() -> ([Invalidation], Bool) {
    var released: [AnyObject] = []
    defer { withExtendedLifetime(released) {} }
    return table.withLock { table in
      var found: [Invalidation] = []
      var hasFallbacks = false
      var retried: [UInt32] = []
      // On from where the last time ended, so that all have their turn.
      let (start, count) = (table.nextRetry, UInt32(table.nodes.count))
      for step in 0..<count {
        let slot = (start + step) % count
        guard let state = table[slot].directory, state.parts != nil, !state.isCovered else { continue }
        hasFallbacks = true
        if state.fallback != nil || slot == NodeTable.root, retried.count < Self.retriesAtOnce {
          retried.append(slot)
          table.nextRetry = slot + 1
          found.append(Invalidation(subject: .parts(table.number(of: slot))))
        }
        if let held = table.release(slot) { released.append(held) }
        if state.wasListed {
          state.wasListed = false
          found.append(Invalidation(subject: .listing(table.number(of: slot))))
        }
      }
      return (found, hasFallbacks)
    }
  }
}
