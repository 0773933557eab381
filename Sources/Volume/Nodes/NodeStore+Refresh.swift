import Fuse
import Layers
import Posix

/// For the invalidator: what a directory's parts have become, and which nodes the kernel may know in it.
extension NodeStore {
  struct PartsChange {
    /// Parts that were added; all parts if `isForced`.
    let arrived: [LayerDirectory]
    /// Indexes of the layers whose part was removed.
    var departed: Set<Int> = []
    /// The names that whiteouts in the removed parts hid, as far as these could still be read.
    var revealed: Set<[UInt8]> = []
    /// Parts that remain below a removed one; the kernel may have negative entries for their names.
    var revealedParts: [LayerDirectory] = []
    /// Whether everything below the directory has to be invalidated.
    let isForced: Bool
    /// The name that the directory has lost to another one, or to none.
    var lostName: EntryKey?
    /// Whether a directory that has lost its name was deleted.
    var isDeleted = false
  }

  /// Resolves a directory's parts again; from now on requests are answered from the new ones.
  /// - Returns: nil if nothing in it was cached, or if the parts are the same and it is not forced.
  /// - Parameter readsWhiteouts: whether to read the names that removed parts hid, which takes a listing each.
  /// - Throws: `deferred` if a layer would have to be asked that may not answer, unless it is forced.
  func refreshParts(
    of node: NodeID, isForced: Bool, readsWhiteouts: Bool
  ) throws(Errno) -> PartsChange? {
    for _ in 0..<Self.maxRefreshes {
      do throws(Errno) {
        return try refreshParts(of: node, isForced: isForced, readsWhiteouts, yields: true)
      } catch {
        // Another thread has exchanged the parts meanwhile, perhaps for newer ones.
        if error != .resourceTemporarilyUnavailable { throw error }
      }
    }
    return try refreshParts(of: node, isForced: isForced, readsWhiteouts, yields: false)
  }

  private static let maxRefreshes = 16

  /// - Parameter yields: whether to throw EAGAIN if another thread exchanges the parts meanwhile.
  private func refreshParts(
    of node: NodeID, isForced: Bool, _ readsWhiteouts: Bool, yields: Bool
  ) throws(Errno) -> PartsChange? {
    guard let watcher else {
      // Only the kernel caches, and it may have cached anything.
      if !isForced { return nil }
      return PartsChange(arrived: (try? merged(of: node).parts) ?? [], isForced: true)
    }
    let key = nameKey(ofDirectory: node)
    var isNameless = false
    let begin = table.withLock { table -> RefreshTime? in
      guard let state = try? Self.state(of: node, table) else { return nil }
      state.version += 1
      isNameless = table.namelessDirectory(node) != nil
      if state.parts == nil { return nil }
      return RefreshTime(
        version: state.version, barriers: table.barriers, exchanges: yields ? state.exchanges : nil)
    }
    // Its parts stay the same.
    if isNameless { return isForced ? PartsChange(arrived: [], isForced: true) : nil }
    guard let begin else { return nil }
    let resolved: ResolvedDirectory
    do throws(Errno) { resolved = try resolveAgain(node, watcher) } catch {
      unwatchIfForgotten(node)
      if error != .deferred { return dropParts(of: node) }
      if !isForced { throw error }
      return keepKnownParts(of: node)
    }
    if !resolved.isCovered { watcher.directoryIsUncovered() }
    if let key, let isDeleted = takeName(key, from: node, ifReplacedBy: resolved) {
      unwatchOthers(than: namelessDirectory(node)?.parts.parts ?? [], of: node, watcher)
      return PartsChange(arrived: [], isForced: true, lostName: key, isDeleted: isDeleted)
    }
    return try exchangeParts(
      of: node, for: resolved, since: begin, isForced: isForced, readsWhiteouts, watcher)
  }

  /// Removes the watches of a directory, except those of some parts.
  private func unwatchOthers(than parts: [LayerDirectory], of node: NodeID, _ watcher: any NodeWatcher) {
    let kept = parts.compactMap { try? watcher.watch($0, for: node) }
    // A needless watch reports changes that are none; a missing one would leave old content in the caches.
    if kept.count == parts.count { watcher.unwatch(node, except: kept) }
  }

  private func resolveAgain(
    _ node: NodeID, _ watcher: any NodeWatcher
  ) throws(Errno) -> ResolvedDirectory {
    do throws(Errno) { try resolveAncestors(of: node) } catch {
      // Without the directory above, this one is absent too.
      if error != .noSuchFileOrDirectory { throw error }
    }
    return try resolve(node, hint: nil, watcher)
  }

  /// When a refresh began.
  private struct RefreshTime {
    let version: Int
    let barriers: Int
    /// nil if it does not matter.
    let exchanges: Int?
  }

  private func exchangeParts(
    of node: NodeID, for resolved: ResolvedDirectory, since begin: RefreshTime,
    isForced: Bool, _ readsWhiteouts: Bool, _ watcher: any NodeWatcher
  ) throws(Errno) -> PartsChange? {
    var (isForgotten, wasOvertaken) = (false, false)
    var removed: [LayerDirectory] = []
    var (change, former) = try table.withLock { table throws(Errno) -> (PartsChange?, [AnyObject]) in
      guard let slot = try? table.slot(of: node), let state = table[slot].directory else {
        isForgotten = true
        return (nil, [])
      }
      if let exchanges = begin.exchanges, exchanges != state.exchanges {
        throw .resourceTemporarilyUnavailable
      }
      state.exchanges += 1
      let (parts, wasCovered) = (state.parts ?? [], state.isCovered)
      removed = state.merged?.parts.filter { !resolved.parts.contains(PartIdentity($0)) } ?? []
      var former: [AnyObject] = []
      // A barrier came after this began to resolve it.
      let needsRefresh = !resolved.isCovered && table.barriers != begin.barriers
      // A thread of a layer may take long, and another may have recorded newer parts meanwhile.
      wasOvertaken = LayerAccess.current == .waiting && state.version != begin.version
      if let held = table.set(resolved, of: slot) { former.append(held) }
      state.needsRefresh = needsRefresh
      // The version between its first increment and now belongs to the former parts.
      state.version += 1
      if resolved.merged != nil { former += table.touchDirectory(slot) }
      let isCoveredAgain = resolved.isCovered && state.mayHaveStaleNegatives
      let isForced = isForced || wasCovered != resolved.isCovered || isCoveredAgain
      if isCoveredAgain { state.mayHaveStaleNegatives = false }
      if parts == resolved.parts, !isForced { return (nil, former) }
      return (PartsChange(from: parts, to: resolved, isForced: isForced), former)
    }
    if readsWhiteouts {
      for part in removed { change?.revealed.formUnion((try? part.whiteoutNames()) ?? []) }
    }
    // Before the former descriptors are closed, so that their last events are not taken for the new parts'.
    watcher.unwatch(node, except: isForgotten ? [] : resolved.watches)
    withExtendedLifetime(former) {}
    if wasOvertaken { watcher.partsMayHaveChanged(of: node) }
    return change
  }

  /// For a directory that cannot be resolved just now: the next request in it tries again.
  private func dropParts(of node: NodeID) -> PartsChange {
    let (former, departed) = table.withLock { table -> (AnyObject?, [PartIdentity]) in
      guard let slot = try? table.slot(of: node) else { return (nil, []) }
      table[slot].directory?.version += 1
      return table.unresolve(slot)
    }
    withExtendedLifetime(former) {}
    return PartsChange(arrived: [], departed: Set(departed.map(\.layer)), isForced: true)
  }

  /// For a directory with a layer that may not answer: the next request resolves it again, or is answered from what
  /// is known if the layer does not answer.
  private func keepKnownParts(of node: NodeID) -> PartsChange {
    // A layer's root may have been replaced by another directory.
    let root = node == .root ? knownRoot() : nil
    var evicted: [AnyObject] = []
    let former = table.withLock { table -> AnyObject? in
      guard let slot = try? table.slot(of: node), let state = table[slot].directory else { return nil }
      defer {
        state.version += 1
        state.needsRefresh = true
      }
      guard let root, state.merged != nil else { return nil }
      let former = table.release(slot)
      state.merged = root
      state.parts = root.parts.map(PartIdentity.init)
      table.memory?.set(.unknown, of: slot)
      evicted = table.touchDirectory(slot)
      return former
    }
    withExtendedLifetime((former, evicted)) {}
    return PartsChange(arrived: [], isForced: true)
  }

  /// The present roots of the layers that took part in the root last.
  private func knownRoot() -> MergedDirectory? {
    let known = table.withLock { table in (try? Self.state(of: .root, table))?.merged }
    return known.map { MergedDirectory(replacingRootsOf: $0, in: stack) }
  }

  func knownNames(in directory: NodeID) -> Set<[UInt8]> {
    table.withLock { table in (try? table.slot(of: directory)).map { table.knownNames(in: $0) } ?? [] }
  }

  /// The known tables in a folder of a language, to which catalogs may contribute; none in other directories.
  func knownTables(in directory: NodeID) -> Set<[UInt8]> {
    if stack.tables == nil { return [] }
    return table.withLock { table in
      guard let slot = try? table.slot(of: directory),
        TableName.isLanguageFolder(table.name(of: slot), foldsNames: table.foldsNames)
      else { return [] }
      return table.knownNames(in: slot).filter { TableName.isTable($0, foldsNames: table.foldsNames) }
    }
  }

  func languageFolders(in directory: NodeID) -> [NodeID] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.languageFolders(in: slot).map { table.number(of: $0) }
    }
  }

  func childDirectories(of directory: NodeID) -> [NodeID] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.childDirectories(of: slot).map { table.number(of: $0) }
    }
  }

  /// The node of a directory's name, of this spelling if there is one.
  func childDirectory(named name: [UInt8], in directory: NodeID) -> NodeID? {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return nil }
      let child = table.directory(name, in: slot)
      if child != 0 { return table.number(of: child) }
      return table.directories(named: name, in: slot).first.map { table.number(of: $0) }
    }
  }

  /// The nodes of a directory's name, one for each spelling.
  func childDirectories(named name: [UInt8], in directory: NodeID) -> [NodeID] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.directories(named: name, in: slot).map { table.number(of: $0) }
    }
  }

  func files(in directory: NodeID, without layers: Set<Int> = []) -> [NodeID] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.children(of: slot)
        .filter { table[$0].directory == nil && !layers.contains(Int(table[$0].layer)) }
        .map { table.number(of: $0) }
    }
  }

  /// The name by which a file was looked up last, unless it has lost it.
  func nameKey(of file: NodeID) -> EntryKey? {
    table.withLock { table in
      guard let slot = try? table.slot(of: file), !table[slot].isDetached else { return nil }
      return EntryKey(parent: table.number(of: table[slot].parent), name: table.name(of: slot))
    }
  }

  /// The names of a directory's known entries: all its directories, and the files of some layers.
  func knownEntries(in directory: NodeID, of layers: Set<Int>) -> [([UInt8], isDirectory: Bool)] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.children(of: slot).compactMap { child in
        let isDirectory = table[child].directory != nil
        let isConcerned =
          !table[child].isDetached && (isDirectory || layers.contains(Int(table[child].layer)))
        return isConcerned ? (table.name(of: child), isDirectory) : nil
      }
    }
  }

  func files(named name: [UInt8], in directory: NodeID, of layer: Int) -> [NodeID] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.nodes(named: name, in: slot)
        .filter { table[$0].directory == nil && Int(table[$0].layer) == layer }
        .map { table.number(of: $0) }
    }
  }

  /// The nodes of a file with several hard links of which this name is one, whether the kernel knows the name or not, as far
  /// as no watch on the file itself reports what happens to them by this name. There is one from now on.
  func unwatchedLinks(named name: [UInt8], in directory: NodeID, of layer: Int) -> [NodeID] {
    guard let parts = try? merged(of: directory).parts(of: layer) else { return [] }
    return parts.flatMap { unwatchedLinks(named: name, in: $0) }
  }

  private func unwatchedLinks(named name: [UInt8], in part: LayerDirectory) -> [NodeID] {
    guard let attributes = try? withCName(name, { name throws(Errno) in try part.attributes(of: name) }),
      attributes.links > 1
    else { return [] }
    let known = table.withLock { table in
      table.files(attributes.identity, layer: part.layer).map { table.number(of: $0) }
    }
    let nodes = known.filter { watcher?.watchesFile($0) != true }
    // No event increments the version of its own directory, a listing of which may be in preparation.
    for node in nodes { recordAttributeChange(of: node) }
    // Without a watch its attributes time out soon.
    for node in nodes { try? withCName(name) { name throws(Errno) in try watchFile(node, name, in: part) } }
    return nodes
  }

  /// Detaches pinned files from a directory whose parts of some layers were removed.
  func detachPinned(in directory: NodeID, of layers: Set<Int>) -> [NodeID] {
    if layers.isEmpty || watcher == nil { return [] }
    return table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      let pinned = table.children(of: slot).filter {
        table[$0].isPinned && !table[$0].isDetached && layers.contains(Int(table[$0].layer))
      }
      for file in pinned { table.detach(file, from: table.name(of: file), in: slot) }
      return pinned.map { table.number(of: $0) }
    }
  }

  /// Watches a pinned file that has lost its name; returns whether it was not watched so far.
  func watchDetached(_ node: NodeID) -> Bool {
    let (isDetached, present) = table.withLock { table -> (Bool, LayerFile?) in
      guard let slot = try? table.slot(of: node) else { return (false, nil) }
      return (table[slot].isDetached, table[slot].file)
    }
    guard isDetached, watcher?.watchesFile(node) == false else { return false }
    // A file whose descriptor was evicted may be opened by its path in the layer, even where that is hidden. A
    // file that is lost for good does not change.
    var file = present
    if file == nil { file = (try? openFile(of: node))?.file }
    return file.map { watchFile(node, $0) } ?? false
  }
}

extension NodeStore.PartsChange {
  fileprivate init(
    from former: [PartIdentity], to resolved: NodeStore.ResolvedDirectory, isForced: Bool
  ) {
    let parts = resolved.merged?.parts ?? []
    let stayed = isForced ? [] : parts.filter { former.contains(PartIdentity($0)) }
    let arrived = isForced ? parts : parts.filter { !former.contains(PartIdentity($0)) }
    let departed = Set(Set(former).subtracting(resolved.parts).map(\.layer))
    self.init(arrived: arrived, departed: departed, isForced: isForced)
    if let highest = departed.min() { revealedParts = stayed.filter { $0.layer > highest } }
  }
}
