import Containers
import Fuse
import Posix
import Synchronization

/// Names for which a request has just failed with ESTALE, on which the kernel looks them up again, but once only. Where the file
/// that it finds is removed before it has asked for the attributes, open(2) would fail, so that file is opened at the lookup; and
/// where it finds none, but there is one when it is to be made, making it is tried for longer.
final class RetriedNames: Sendable {
  /// Milliseconds within which the kernel looks a name up again.
  private static let lifetime: CInt = 1000

  /// Spares other lookups the lock.
  private let isEmpty = Atomic(true)
  private let names = Locked(LRUCache<EntryKey, TimeSpec>(countLimit: 64))

  func add(_ key: EntryKey) {
    names.withLock { names in
      names.insert(.monotonic, for: key)
      isEmpty.store(false, ordering: .relaxed)
    }
  }

  /// Whether a request for the name is such a retry, most likely.
  @inline(__always)
  func contains(_ name: CName, in parent: NodeID) -> Bool {
    isEmpty.load(ordering: .relaxed) ? false : contains(EntryKey(parent: parent, name))
  }

  private func contains(_ key: EntryKey) -> Bool {
    let now = TimeSpec.monotonic
    return names.withLock { names in
      while let oldest = names.oldest, now.milliseconds(since: oldest) > Self.lifetime {
        names.removeOldest()
      }
      isEmpty.store(names.count == 0, ordering: .relaxed)
      return names.value(for: key).map { now.milliseconds(since: $0) <= Self.lifetime } ?? false
    }
  }
}

extension NodeStore {
  /// Records that the kernel is about to look a node's name up again.
  func recordRetry(of node: NodeID) {
    let key = table.withLock { table in
      (try? table.slot(of: node)).map { slot in
        EntryKey(parent: table.number(of: table[slot].parent), name: table.name(of: slot))
      }
    }
    if let key { retried.add(key) }
  }
}
