import Fuse
import Layers
import Posix

/// For the watcher: the nodes whose changes no watch reports.
extension NodeStore {
  /// Directories whose parts are resolved again at each poll: the limit of watches may last.
  private static let retriesAtOnce = 64
  /// Nodes visited before requests may have the table's lock again.
  private static let nodesPerLock = 256

  // MARK: - Polls

  struct PolledDirectories {
    /// Those whose parts have to be resolved again, some at a time.
    var retried: [NodeID] = []
    /// Those whose cached listing has to be dropped.
    var listed: [NodeID] = []
    /// Those that may have lasting negative entries in the kernel, some at a time.
    var formerlyCovered: [NodeID] = []
    var exist = false
  }

  /// Visits the directories that cannot be watched: from now on each is resolved again before it is used.
  func pollUncovered() -> PolledDirectories {
    var found = PolledDirectories()
    let unresponsive = unresponsiveLayers
    let count = visitUncovered(\.uncovered) { slot, table in
      table[slot].directory?.needsRefresh = true
      if table.layers(of: slot).isDisjoint(with: unresponsive) { Self.poll(slot, &found, &table) }
    }
    found.exist = count > 0
    table.withLock { table in
      // Each directory gets its turn.
      for node in found.retried + found.formerlyCovered {
        if let slot = try? table.slot(of: node) { table.uncovered.postpone(slot) }
      }
    }
    return found
  }

  private static func poll(_ slot: UInt32, _ found: inout PolledDirectories, _ table: inout NodeTable) {
    guard let state = table[slot].directory,
      state.parts != nil || table.namelessDirectories[slot] != nil
    else { return }
    let isRetried = state.uncachedReason != nil || slot == NodeTable.root
    if isRetried, found.retried.count < retriesAtOnce { found.retried.append(table.number(of: slot)) }
    if state.mayHaveStaleNegatives, found.formerlyCovered.count < retriesAtOnce {
      found.formerlyCovered.append(table.number(of: slot))
    }
    if state.wasListed {
      state.wasListed = false
      found.listed.append(table.number(of: slot))
    }
  }

  /// Visits the nodes that are listed now, in batches. Those that are added meanwhile have just been resolved.
  /// - Returns: how many there were.
  private func visitUncovered(
    _ list: WritableKeyPath<NodeTable, PollOrder>, _ visit: (UInt32, inout NodeTable) -> Void
  ) -> Int {
    let count = table.withLock { $0[keyPath: list].count }
    var remaining = count
    while remaining > 0 {
      let batch = min(remaining, Self.nodesPerLock)
      remaining -= batch
      table.withLock { table in
        for _ in 0..<batch {
          let slot = table[keyPath: list].next()
          if slot != 0 { visit(slot, &table) }
        }
      }
    }
    return count
  }

  // MARK: - Barriers

  struct UncoveredNodes {
    var directories: [NodeID] = []
    var files: [NodeID] = []
  }

  /// Finds all nodes that the kernel may have cached something of whose changes are not reported. What is being
  /// resolved just now is not recorded, but resolved again.
  func markUncovered() -> UncoveredNodes {
    var found = UncoveredNodes()
    table.withLock { $0.barriers += 1 }
    if watcher == nil {
      found.directories = allDirectories()
      return found
    }
    _ = visitUncovered(\.uncovered) { slot, table in
      table[slot].directory?.needsRefresh = true
      table[slot].directory?.version += 1
      found.directories.append(table.number(of: slot))
    }
    _ = visitUncovered(\.uncoveredFiles) { slot, table in found.files.append(table.number(of: slot)) }
    return found
  }

  /// Whether watches report every change to what the kernel may have cached of directories.
  var isWhollyCovered: Bool { watcher != nil && table.withLock { $0.uncovered.count == 0 } }

  func allDirectories(where condition: (DirectoryState) -> Bool = { _ in true }) -> [NodeID] {
    var found: [NodeID] = []
    var slot = NodeTable.root
    while true {
      let isEnd = table.withLock { table in
        let end = min(slot + UInt32(Self.nodesPerLock), UInt32(table.nodes.count))
        for slot in slot..<end where table[slot].directory.map(condition) ?? false {
          found.append(table.number(of: slot))
        }
        slot = end
        return end == table.nodes.count
      }
      if isEnd { return found }
    }
  }

  /// The layers that do not answer.
  var unresponsiveLayers: Set<Int> {
    Set(stack.layers.indices.filter { stack.layers[$0].gate.unresponsiveSince != nil })
  }

  /// A directory's name in its parent, and which of the two have parts only in layers that answer.
  func location(of directory: NodeID, without unresponsive: Set<Int>) -> (
    parent: NodeID, name: [UInt8], parentAnswers: Bool, answers: Bool
  )? {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return nil }
      let parent = max(table[slot].parent, NodeTable.root)
      return (
        table.number(of: parent), slot == NodeTable.root ? [] : table.name(of: slot),
        table.layers(of: parent).isDisjoint(with: unresponsive),
        table.layers(of: slot).isDisjoint(with: unresponsive)
      )
    }
  }

  /// The known files of which another hard link is in a directory without a watch. Neither its creation nor what is
  /// written by it is reported in the directories that are watched.
  func filesLinked(into directory: NodeID) -> Set<NodeID> {
    guard watcher != nil, let merged = try? merged(of: directory) else { return [] }
    var found: Set<NodeID> = []
    for part in merged.parts {
      for name in (try? part.affectedNames()) ?? [] {
        found.formUnion(unwatchedLinks(named: name, in: directory, of: part.layer))
      }
    }
    return found
  }

  // MARK: - Missing names

  /// The names in a directory that was covered before, whose lasting negative entries no invalidation has removed.
  func namesWithStaleNegatives(in directory: NodeID) -> Set<[UInt8]> {
    let isConcerned = table.withLock { table in
      (try? Self.state(of: directory, table))?.mayHaveStaleNegatives ?? false
    }
    guard isConcerned, let merged = try? merged(of: directory) else { return [] }
    return merged.parts.reduce(into: []) { names, part in names.formUnion((try? part.affectedNames()) ?? []) }
  }

  /// The names that the kernel may have cached as missing in a directory, as far as the layers do not say. Those with a
  /// timeout are no longer recorded.
  func takeMissingNames(in directory: NodeID) -> [[UInt8]] {
    // The spellings stay on record: a successor needs them if this process dies before it has invalidated them.
    negatives.withLock { $0.remove(directory) } + (spellings?.all(in: directory) ?? [])
  }

  /// Seconds for which the kernel may cache that a name is missing.
  func negativeTimeout(of name: CName, in directory: NodeID) -> Double {
    let timeout = timeout(in: directory)
    if timeout <= 0 { return timeout }
    // A program can make it in another spelling.
    if isWritable, spellings != nil { return 0 }
    // Also one with a timeout, of which a successor would not know.
    if spellings != nil { recordSpelling([UInt8](bytesOf: name), in: directory) }
    if watcher != nil, timeout == CacheMode.forever { return timeout }
    let (bytes, now) = ([UInt8](bytesOf: name), TimeSpec.monotonic)
    // A reply may take a while.
    let end = now.advanced(byMilliseconds: CInt(clamping: Int64(min(timeout, 1e6) * 1000) + 2000))
    let isRecorded = negatives.withLock { $0.add(bytes, in: directory, until: end, now: now) }
    return isRecorded ? timeout : 0
  }

  // MARK: - Files

  /// Records that a file needs a watch of its own, and has none.
  func recordUncovered(_ file: NodeID) {
    table.withLock { table in
      guard let slot = try? table.slot(of: file) else { return }
      table.uncoveredFiles.insert(slot)
    }
  }

  /// Removes a file from the uncovered ones if it is watched, or can be watched now.
  func retryWatch(_ file: NodeID) {
    guard let watcher else { return }
    let isWatched =
      watcher.watchesFile(file)
      || (try? presentFile(of: file)).flatMap(\.self).map { watchFile(file, $0) } == true
    if isWatched {
      table.withLock { table in (try? table.slot(of: file)).map { table.uncoveredFiles.remove($0) } }
    }
  }
}
