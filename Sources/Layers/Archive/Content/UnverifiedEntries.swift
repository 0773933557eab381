import Posix

/// The entries of which bytes were returned before their checksum was verified. A repaired archive may have
/// the same size and checksum, so nothing else shows that the kernel's cache is wrong.
final class UnverifiedEntries: Sendable {
  private let inodes = Locked<Set<UInt64>>([])

  var all: Set<UInt64> { inodes.withLock { $0 } }

  func insert(_ inode: UInt64) { inodes.withLock { _ = $0.insert(inode) } }

  func remove(_ inode: UInt64) -> Bool { inodes.withLock { $0.remove(inode) != nil } }

  func take(except isKept: (UInt64) -> Bool) -> Set<UInt64> {
    inodes.withLock { inodes in
      let taken = inodes.filter { !isKept($0) }
      inodes.subtract(taken)
      return taken
    }
  }
}
