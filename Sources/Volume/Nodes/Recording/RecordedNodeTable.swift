import Posix

/// The node table behind its lock. What was changed is recorded before the lock is released, and so before any reply.
final class RecordedNodeTable: Sendable {
  private let table: Locked<NodeTable>

  init(_ table: NodeTable) { self.table = Locked(order: 60, table) }

  /// Calls the body with the lock held, which is not recursive.
  @inline(__always)
  func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout NodeTable) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try table.withLock { table throws(Failure) in
      defer { table.record() }
      return try body(&table)
    }
  }
}
