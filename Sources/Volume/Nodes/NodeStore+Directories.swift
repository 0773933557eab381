import Fuse
import Layers
import Posix

/// Which parts a directory consists of: resolved once, watched, and kept until a change invalidates them.
extension NodeStore {
  /// What a lookup has found by a directory's name.
  struct FoundDirectory {
    /// nil where no layer has it.
    let merged: MergedDirectory?
    /// The directory above in which it was looked for; nil for the root, and where that is absent.
    var above: MergedDirectory?
  }

  struct ResolvedDirectory {
    let found: FoundDirectory
    var watches: [WatchDescriptor] = []
    var isCovered: Bool
    var fallback: UncachedReason?

    /// nil where no layer has the directory any more.
    var merged: MergedDirectory? { found.merged }
    var parts: [PartIdentity] { merged?.parts.map(PartIdentity.init) ?? [] }
  }

  /// - Parameter hint: what a lookup in its parent has just found under its name.
  /// - Throws: ENOENT where no layer has it any more; ENOTDIR for another kind of node.
  func merged(of node: NodeID, hint: FoundDirectory? = nil) throws(Errno) -> MergedDirectory {
    do throws(Errno) {
      let isWhole = hint?.merged?.missing?.error != .deferred
      return try merged(of: node, hint: isWhole ? hint : nil, resolvesAncestors: true)
    } catch {
      guard error == .deferred, LayerAccess.current == .lastKnown else { throw error }
      // What it was is not known, as in a successor. Its upper parts are found, and not recorded.
      return try directory(at: path(of: node), toleratesDeferral: true)
    }
  }

  func merged(
    of node: NodeID, hint: FoundDirectory?, resolvesAncestors: Bool
  ) throws(Errno) -> MergedDirectory {
    guard let watcher else {
      if let nameless = namelessDirectory(node) { return nameless.parts }
      return try directory(at: path(of: node))
    }
    var (hint, attempts) = (hint, 0)
    while true {
      let (present, time, evicted) = try table.withLock {
        table throws(Errno) -> (MergedDirectory?, ResolutionTime, [AnyObject]) in
        let state = try Self.state(of: node, table)
        if let nameless = table.namelessDirectory(node) {
          return (nameless.parts, ResolutionTime(state, table), [])
        }
        // Without a watch that reports its coming, it is looked for each time.
        if state.parts?.isEmpty == true, state.isCovered { throw .noSuchFileOrDirectory }
        guard let merged = state.merged, !state.needsRefresh || LayerAccess.current.usesKnownState else {
          return (nil, ResolutionTime(state, table), [])
        }
        return (merged, ResolutionTime(state, table), table.touchDirectory(try table.slot(of: node)))
      }
      withExtendedLifetime(evicted) {}
      if let present { return present }
      if hint == nil, resolvesAncestors { try resolveAncestors(of: node) }
      do throws(Errno) {
        let resolved = try resolve(node, hint: hint, watcher)
        if let merged = try keep(resolved, of: node, since: time, watcher) { return merged }
        // Barriers may come faster than a slow layer answers. Nothing is recorded then.
        attempts += 1
        if attempts >= Self.maxAttempts, let merged = resolved.merged { return merged }
      } catch {
        unwatchIfForgotten(node)
        throw error
      }
      // A change came in between, so the hint is outdated.
      hint = nil
    }
  }

  /// - Throws: ENOENT where there is none any more.
  private func directory(
    at path: [[UInt8]], toleratesDeferral: Bool = false
  ) throws(Errno) -> MergedDirectory {
    do throws(Errno) {
      return try stack.directory(at: path, toleratesDeferral: toleratesDeferral)
    } catch {
      throw error == .notDirectory ? .noSuchFileOrDirectory : error
    }
  }

  private static let maxAttempts = 16

  /// What tells whether something came in between while a directory was being resolved.
  private struct ResolutionTime {
    let version: Int
    let barriers: Int
    /// Whether the kernel has nothing cached of it, and a successor is to know what it began with.
    let isFirst: Bool

    init(_ state: DirectoryState, _ table: NodeTable) {
      version = state.version
      barriers = table.barriers
      isFirst = table.memory != nil && !state.wasResolved
    }
  }

  /// - Returns: nil if a change came in between, or a barrier where changes are not reported.
  private func keep(
    _ resolved: ResolvedDirectory, of node: NodeID, since time: ResolutionTime, _ watcher: any NodeWatcher
  ) throws(Errno) -> MergedDirectory? {
    // Before anything is answered from it.
    let first = time.isFirst ? fingerprint(of: resolved.merged?.parts ?? []) : .none
    let kept = try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      if time.isFirst { table.memory?.add(first, of: slot) }
      return try Self.keep(resolved, in: slot, since: time, &table)
    }
    withExtendedLifetime(kept.released) {}
    if kept.isOutdated { watcher.partsMayHaveChanged(of: node) }
    if !resolved.isCovered { watcher.directoryIsUncovered() }
    if kept.merged == nil, resolved.merged == nil { throw .noSuchFileOrDirectory }
    return kept.merged
  }

  private struct KeptDirectory {
    var merged: MergedDirectory?
    var released: [AnyObject] = []
    /// Whether the directory is recorded with other parts than those just resolved.
    var isOutdated = false
  }

  private static func keep(
    _ resolved: ResolvedDirectory, in slot: UInt32, since time: ResolutionTime, _ table: inout NodeTable
  ) throws(Errno) -> KeptDirectory {
    guard let state = table[slot].directory else { throw .notDirectory }
    if let parts = state.parts, parts != resolved.parts {
      // The event of the change that made the difference is still queued and will be handled in full. Where
      // nothing reports it, what was just resolved is newer, unless another directory has the name: the invalidation
      // takes it away from this one.
      let isNewer = state.needsRefresh && table.replacedDirectory(slot, by: resolved.found) == nil
      return KeptDirectory(
        merged: isNewer ? resolved.merged : state.merged ?? resolved.merged, isOutdated: true)
    }
    var kept = KeptDirectory()
    let isUnresolved = state.parts == nil
    if isUnresolved || state.needsRefresh, state.version != time.version { return kept }
    if isUnresolved, !resolved.isCovered, table.barriers != time.barriers { return kept }
    if isUnresolved {
      if let former = table.set(resolved, of: slot) { kept.released.append(former) }
      // Takes the invalidation of all names that exist now.
      kept.isOutdated = resolved.isCovered && state.mayHaveStaleNegatives
    } else if state.needsRefresh || state.merged == nil {
      // That it is covered by now takes an invalidation, with which the next poll records it.
      if let former = table.release(slot) { kept.released.append(former) }
      state.merged = resolved.merged
      state.needsRefresh = false
    }
    guard state.merged != nil else { return kept }
    kept.merged = state.merged
    kept.released += table.touchDirectory(slot)
    return kept
  }

  /// Resolves a directory's parts in the layers and watches them. Whiteouts and opaque markers lie in the parts
  /// themselves, so the parts are resolved again once they are watched. Watches that prove needless are removed
  /// later, since another request may rely on them already.
  func resolve(
    _ node: NodeID, hint: FoundDirectory?, _ watcher: any NodeWatcher
  ) throws(Errno) -> ResolvedDirectory {
    let (isCovered, lowest) = try parentCoverage(of: node)
    var found: FoundDirectory
    if let hint { found = hint } else { found = try lookUp(node) }
    while true {
      let merged = found.merged
      var resolved = ResolvedDirectory(found: found, isCovered: isCovered)
      guard let parts = merged?.parts else { return resolved }
      for part in parts { try watch(part, for: node, &resolved, watcher) }
      if let missing = merged?.missing {
        resolved.isCovered = false
        resolved.fallback = UncachedReason(layer: missing.layer, reason: "has failed: \(missing.error)")
      }
      // An overdue layer was left out.
      if LayerAccess.current == .skipping { resolved.isCovered = false }
      // The parent's watches report which layers have the name. A marker in the lowest part could hide nothing;
      // one in a part above it may have come before the watch.
      if isCovered, let last = parts.last?.layer,
        last == lowest || hasNothing(below: last, of: node, in: found.above),
        try merged?.hasOpaqueParts() == false
      {
        return resolved
      }
      let again = try lookUp(node)
      if again.merged?.parts.map(PartIdentity.init) == resolved.parts { return resolved }
      found = again
    }
  }

  private func watch(
    _ part: LayerDirectory, for node: NodeID, _ resolved: inout ResolvedDirectory, _ watcher: any NodeWatcher
  ) throws(Errno) {
    func uncover(_ reason: String) {
      resolved.isCovered = false
      resolved.fallback = resolved.fallback ?? UncachedReason(layer: part.layer, reason: reason)
    }
    do throws(Errno) {
      if let watch = try watcher.watch(part, for: node) { resolved.watches.append(watch) }
    } catch {
      if error == .deferred { throw error }
      uncover(
        error == .noSpace
          ? Self.noWatches
          : "cannot be watched: \(error)"
      )
    }
    let fault =
      node == .root
      ? unwatchableLayers[part.layer] ?? watcher.fault(of: part.layer) : try unwatchableReason(of: part)
    if let fault { uncover(fault) }
  }

  /// Why inotify does not report all changes in a part that lies on another file system than its layer's root,
  /// which is seen where the layer is no private clone of its mount.
  /// - Throws: `deferred`.
  private func unwatchableReason(of part: LayerDirectory) throws(Errno) -> String? {
    if part.isInArchive || part.isAboveLayer { return nil }
    if stack.layers[part.layer].ownRoot.identity.device == part.identity.device { return nil }
    do throws(Errno) {
      return try part.unwatchableFileSystem().map(Self.unwatchableReason)
    } catch {
      if error == .deferred { throw error }
      return nil
    }
  }

  /// Why nothing more can be watched after ENOSPC of inotify_add_watch(2).
  static let noWatches = "no more inotify watches: raise the sysctl fs.inotify.max_user_watches"

  static func unwatchableReason(_ fileSystem: String) -> String {
    "\(fileSystem) does not report all changes"
  }

  /// Whether watches report every change to a directory and to the files in it.
  func isCovered(_ directory: NodeID) -> Bool {
    table.withLock { table in (try? Self.state(of: directory, table))?.isCovered ?? false }
  }

  func version(of directory: NodeID) -> Int {
    table.withLock { table in (try? Self.state(of: directory, table))?.version ?? 0 }
  }

  /// Whether a directory is covered and no change to it was reported since a version.
  func isUnchanged(_ directory: NodeID, since version: Int) -> Bool {
    if watcher == nil { return false }
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
