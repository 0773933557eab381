import Posix

/// The entries of which something was handed out that was not compared with their checksum. Damage shows at an
/// entry's end only; whoever repairs the archive leaves size and checksum as they are, so nothing else tells
/// that what the kernel keeps is wrong.
final class UnverifiedEntries: Sendable {
  private let inodes = Locked<Set<UInt64>>([])

  func insert(_ inode: UInt64) { inodes.withLock { _ = $0.insert(inode) } }

  /// - Returns: whether it was one of them.
  func remove(_ inode: UInt64) -> Bool { inodes.withLock { $0.remove(inode) != nil } }

  /// Takes out all but some.
  func take(except isKept: (UInt64) -> Bool) -> Set<UInt64> {
    inodes.withLock { inodes in
      let taken = inodes.filter { !isKept($0) }
      inodes.subtract(taken)
      return taken
    }
  }
}
