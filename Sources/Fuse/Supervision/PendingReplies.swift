import Posix
import Synchronization

/// The requests that other threads will reply to, with the threads that made them, so that they can be interrupted.
final class PendingReplies: Sendable {
  private let pending = Locked<[UInt64: Int32]>([:])
  private let isLeft = Atomic(false)

  /// Whether the process hands over: the kernel sends its successor what has no reply by then.
  var isHandingOver: Bool { isLeft.load(ordering: .sequentiallyConsistent) }

  /// To be called before the file system stops.
  func beginHandover() { isLeft.store(true, ordering: .sequentiallyConsistent) }

  func add(_ unique: UInt64, caller: Int32) {
    if unique != 0 { pending.withLock { $0[unique] = caller } }
  }

  func remove(_ unique: UInt64) {
    if unique != 0 { pending.withLock { _ = $0.removeValue(forKey: unique) } }
  }

  var callers: [UInt64: Int32] { pending.withLock { $0 } }
}
