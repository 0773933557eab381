import Posix

/// The large entries of which bytes were returned, which the kernel may have cached. A small entry is verified before
/// its first byte is returned, and so needs no record.
///
/// The rule that keeps states of an archive apart: an entry whose returned bytes were never verified becomes another
/// file in the next state, and one whose bytes were verified returns none of the next state's before all of those are.
final class ServedEntries: Sendable {
  private struct State {
    /// The generation of the archive's state from which bytes were returned, by inode number.
    var generations: [UInt64: UInt32] = [:]
    var unverified: Set<UInt64> = []
  }
  private let state = Locked(State())

  func insert(_ inode: UInt64, from generation: UInt32, isVerified: Bool) {
    state.withLock { state in
      state.generations[inode] = generation
      if !isVerified { state.unverified.insert(inode) }
    }
  }

  func setVerified(_ inode: UInt64) { state.withLock { _ = $0.unverified.remove(inode) } }

  /// Whether bytes of another state were returned.
  func isServed(_ inode: UInt64, byOtherThan generation: UInt32) -> Bool {
    state.withLock { $0.generations[inode].map { $0 != generation } ?? false }
  }

  func isUnverified(_ inode: UInt64, byOtherThan generation: UInt32) -> Bool {
    state.withLock { $0.unverified.contains(inode) && $0.generations[inode] != generation }
  }

  /// The entries that returned unverified bytes of another state.
  func unverified(byOtherThan generation: UInt32) -> Set<UInt64> {
    state.withLock { state in state.unverified.filter { state.generations[$0] != generation } }
  }

  /// Forgets the entries that an archive's present state lacks.
  func removeAll(except tree: ArchiveTree) {
    var gone = state.withLock { Set($0.generations.keys) }
    if gone.isEmpty { return }
    for node in tree.nodes { gone.remove(node.inode) }
    state.withLock { state in
      state.unverified.subtract(gone)
      for inode in gone { state.generations[inode] = nil }
    }
  }
}
