import Fuse
import Layers
import Posix

/// What lies above a directory, in trees that may be deeper than a thread's stack: nothing here recurses.
extension NodeStore {
  /// Resolves the directories above, from the top down, so that none recurses as deep as the tree is.
  /// - Throws: the error of the first that cannot be resolved; nothing below it can be.
  func resolveAncestors(of node: NodeID) throws(Errno) {
    let unresolved = table.withLock { table -> [NodeID] in
      guard let slot = try? table.slot(of: node) else { return [] }
      var unresolved: [NodeID] = []
      var ancestor = table[slot].parent
      while ancestor != 0, table.namelessDirectories[ancestor] == nil, let state = table[ancestor].directory,
        state.merged == nil || (state.needsRefresh && !LayerAccess.current.usesKnownState)
      {
        unresolved.append(table.number(of: ancestor))
        ancestor = table[ancestor].parent
      }
      return unresolved
    }
    for ancestor in unresolved.reversed() {
      _ = try merged(of: ancestor, hint: nil, resolvesAncestors: false)
    }
  }

  /// Looks a directory up in the one above it.
  func lookUp(_ node: NodeID) throws(Errno) -> FoundDirectory {
    if node == .root { return FoundDirectory(merged: try stack.root()) }
    let (known, ancestor, names) = try nearestAncestor(of: node)
    guard let last = names.last else { return FoundDirectory(merged: nil) }
    if let known, let ancestor, names.count == 1 {
      let entry = try withCName(last) { name throws(Errno) in
        try lookUp(name, in: ancestor, known, isLikelyDirectory: true)
      }
      guard case .directory(let found, _) = entry else { return FoundDirectory(merged: nil, above: known) }
      return FoundDirectory(merged: found, above: known)
    }
    var above = known
    if above == nil { above = try stack.root() }
    for name in names.dropLast() { above = try above?.directory(named: name) }
    return FoundDirectory(merged: try above?.directory(named: last), above: above)
  }

  /// The nearest directory above another one whose parts are known, and the names from there to that other one.
  ///
  /// It is the parent, once `resolveAncestors` has resolved that. But a poll or a barrier can come behind it and have
  /// all of them resolved again: then they are looked up past what is recorded, in one go.
  /// - Returns: nil and no names where a directory in between is known to be absent; nil for the root's present parts; and its
  ///   node, unless it has lost its name.
  private func nearestAncestor(
    of node: NodeID
  ) throws(Errno) -> (known: MergedDirectory?, NodeID?, names: [[UInt8]]) {
    let (known, ancestor, names, evicted) = try table.withLock {
      table throws(Errno) -> (MergedDirectory?, NodeID?, [[UInt8]], [AnyObject]) in
      var (slot, names) = (try table.slot(of: node), [[UInt8]]())
      while slot != NodeTable.root {
        names.append(table.name(of: slot))
        slot = table[slot].parent
        if let nameless = table.namelessDirectory(table.number(of: slot)) {
          return (nameless.parts, nil, names, [])
        }
        guard let state = table[slot].directory else { throw .notDirectory }
        if state.parts?.isEmpty == true, state.isCovered { return (nil, nil, [], []) }
        guard let merged = state.merged, !state.needsRefresh || LayerAccess.current.usesKnownState else {
          continue
        }
        return (merged, table.number(of: slot), names, table.touchDirectory(slot))
      }
      return (nil, nil, names, [])
    }
    withExtendedLifetime(evicted) {}
    return (known, ancestor, names.reversed())
  }

  /// Whether a directory's parent is covered, and the index of the lowest layer that takes part in it.
  func parentCoverage(of node: NodeID) throws(Errno) -> (isCovered: Bool, lowest: Int?) {
    if node == .root { return (true, stack.layers.count - 1) }
    return try table.withLock { table throws(Errno) in
      let state = table[table[try table.slot(of: node)].parent].directory
      return (state?.isCovered ?? false, state?.parts?.last?.layer)
    }
  }
}

extension MergedDirectory {
  /// - Returns: nil where no layer has a directory of this name.
  fileprivate func directory(named name: [UInt8]) throws(Errno) -> MergedDirectory? {
    let entry = try withCName(name) { name throws(Errno) in try lookup(name, isLikelyDirectory: true) }
    guard case .directory(let found, _) = entry else { return nil }
    return found
  }
}
