import Fuse
import Layers
import Posix

/// For the invalidator: what has become of a directory, and whom the kernel may know in it.
extension Volume {
  /// What came and went with a directory's parts.
  struct PartsChange {
    /// Parts of which the kernel knows nothing, or may know anything.
    let arrived: [LayerDirectory]
    /// Layers whose part went.
    var departed: Set<Int> = []
    /// What the marks in those hid, as far as they could still be read: it shows now.
    var uncovered: Set<[UInt8]> = []
    /// Parts that stayed below one that went, whose names the kernel may know as absent.
    var uncoveredParts: [LayerDirectory] = []
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
    do throws(Errno) { found = try findAnew(node, coherence) } catch {
      giveBackIfForgotten(node)
      return forgetParts(of: node)
    }
    if !found.isCovered { coherence.noteFallback() }
    return exchangeParts(of: node, for: found, isForced: isForced, coherence)
  }

  private func findAnew(_ node: NodeID, _ coherence: LayerWatcher) throws(Errno) -> Found {
    do throws(Errno) { try lookAtAncestors(of: node) } catch {
      // Where there is nothing above, there is nothing here.
      if error != .noSuchFileOrDirectory { throw error }
    }
    return try find(node, hint: nil, coherence)
  }

  private func exchangeParts(
    of node: NodeID, for found: Found, isForced: Bool, _ coherence: LayerWatcher
  ) -> PartsChange? {
    var isForgotten = false
    var gone: [LayerDirectory] = []
    var (change, former) = table.withLock { table -> (PartsChange?, [AnyObject]) in
      guard let slot = try? table.slot(of: node), let state = table[slot].directory else {
        isForgotten = true
        return (nil, [])
      }
      let (parts, wasCovered) = (state.parts ?? [], state.isCovered)
      gone = state.merged?.parts.filter { !found.parts.contains(PartIdentity($0)) } ?? []
      var former: [AnyObject] = []
      if let held = table.release(slot) { former.append(held) }
      Self.set(found, in: state)
      // Between its first growth and now it belonged to the former parts.
      state.version += 1
      if found.merged != nil { former += table.touchDirectory(slot) }
      if parts == found.parts, !isForced, wasCovered == found.isCovered { return (nil, former) }
      let isForced = isForced || wasCovered != found.isCovered
      return (PartsChange(from: parts, to: found, isForced: isForced), former)
    }
    if announcer != nil {
      for part in gone { change?.uncovered.formUnion((try? part.hiddenNames()) ?? []) }
    }
    // Before the former directories are let go: their end is none of the new ones'.
    coherence.watches.removeWatches(of: node, except: isForgotten ? [] : found.watches)
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

  /// The node of a file with several names, one of which is this, whether the kernel was told of it or not. From
  /// now on it is watched by itself: what happens to it by this name is told of no directory that knows it.
  func linkedFile(named name: [UInt8], in directory: NodeID, of layer: Int) -> NodeID? {
    guard let part = try? merged(of: directory).part(of: layer),
      let attributes = try? withCName(name, { name throws(Errno) in try part.attributes(of: name) }),
      attributes.links > 1
    else { return nil }
    let node = table.withLock { table -> NodeID? in
      let slot = table.file(attributes.identity, layer: layer)
      if slot == 0 { return nil }
      // Its own directory is not told, and may be about to be shown as it was.
      table[table[slot].parent].directory?.version += 1
      return table.number(of: slot)
    }
    // Where no watch is left, its attributes are soon asked for again.
    if let node { try? withCName(name) { name throws(Errno) in try watchByItself(node, name, in: part) } }
    return node
  }

  /// Notes that files which are being read cannot be reached any more by the parts of a directory that went.
  /// - Returns: the files.
  func detachReaders(in directory: NodeID, of layers: Set<Int>) -> [NodeID] {
    if layers.isEmpty || coherence == nil { return [] }
    return table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      let readers = table.children(of: slot).filter {
        table[$0].isPinned && !table[$0].isDetached && layers.contains(Int(table[$0].layer))
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
    guard isDetached, coherence?.watches.hasFileWatch(node) == false else { return false }
    // One that made room for others may be reached by its path in the layer, also where that is hidden. What
    // is lost for good does not change.
    var file = present
    if file == nil { file = try? openFile(of: node) }
    return file.map { watchByItself(node, $0) } ?? false
  }

  /// Has a file watched by itself that has a name in a part.
  /// - Throws: as `WatchTable.watchFile`.
  func watchByItself(_ node: NodeID, _ name: CName, in part: LayerDirectory) throws(Errno) {
    guard let watches = coherence?.watches else { return }
    _ = try part.withWatchPath(of: name) { path throws(Errno) in
      try watches.watchFile(node, at: path, follows: false)
    }
    giveBackIfForgotten(node)
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
    watches.removeWatches(of: node)
    watches.removeFileWatch(node)
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
        if state.uncachedReason != nil || slot == NodeTable.root, retried.count < Self.retriesAtOnce {
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

extension Volume.PartsChange {
  /// From the parts that a directory had to those that it has now.
  fileprivate init(from former: [PartIdentity], to found: Volume.Found, isForced: Bool) {
    let parts = found.merged?.parts ?? []
    let stayed = isForced ? [] : parts.filter { former.contains(PartIdentity($0)) }
    let arrived = isForced ? parts : parts.filter { !former.contains(PartIdentity($0)) }
    let departed = Set(Set(former).subtracting(found.parts).map(\.layer))
    self.init(arrived: arrived, departed: departed, isForced: isForced)
    if let highest = departed.min() { uncoveredParts = stayed.filter { $0.layer > highest } }
  }
}
