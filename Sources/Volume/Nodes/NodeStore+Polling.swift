import Fuse
import Layers
import Posix

/// For the watcher: the directories whose changes no watch reports.
extension NodeStore {
  /// Directories whose parts are resolved again at each poll: the limit of watches may last.
  private static let retriesAtOnce = 64
  /// Directories visited before requests may have the table's lock again.
  static let directoriesPerLock = 256

  struct UncoveredDirectories {
    /// Those whose parts have to be resolved again, some at a time.
    var retried: [NodeID] = []
    /// Those whose cached listing has to be dropped.
    var listed: [NodeID] = []
    var exist = false
  }

  /// Visits the directories that cannot be watched: from now on each is resolved again before it is used.
  func pollUncovered() -> UncoveredDirectories {
    var found = UncoveredDirectories()
    // Those that become uncovered meanwhile have just been resolved.
    var remaining = table.withLock { $0.uncovered.count }
    found.exist = remaining > 0
    while remaining > 0 {
      let count = min(remaining, Self.directoriesPerLock)
      remaining -= count
      table.withLock { table in
        for _ in 0..<count { Self.poll(table.uncovered.next(), &found, &table) }
      }
    }
    table.withLock { table in
      // Each directory gets its turn.
      for node in found.retried { if let slot = try? table.slot(of: node) { table.uncovered.postpone(slot) } }
    }
    return found
  }

  private static func poll(_ slot: UInt32, _ found: inout UncoveredDirectories, _ table: inout NodeTable) {
    guard slot != 0, let state = table[slot].directory else { return }
    let isRetried = state.uncachedReason != nil || slot == NodeTable.root
    if isRetried, found.retried.count < retriesAtOnce { found.retried.append(table.number(of: slot)) }
    state.needsRefresh = true
    // Voids what is being resolved now.
    state.version += 1
    if state.wasListed {
      state.wasListed = false
      found.listed.append(table.number(of: slot))
    }
  }
}
