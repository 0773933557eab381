import Posix
import Synchronization

/// The requests that other threads will reply to, with the threads that made them, so that they can be interrupted.
final class PendingReplies: Sendable {
  private struct Entry {
    let caller: Int32
    /// Whether the thread that works on it looks for interruptions.
    var isPolled: Bool
    /// When its caller was found to be killed.
    var interrupted: TimeSpec?
  }

  /// Milliseconds within which a thread that looks for interruptions replies, even on a busy machine.
  private static let grace: CInt = 500

  private let pending = Locked<[UInt64: Entry]>([:])
  private let isLeft = Atomic(false)

  /// Whether the process hands over: the kernel sends its successor what has no reply by then.
  var isHandingOver: Bool { isLeft.load(ordering: .sequentiallyConsistent) }

  /// To be called before the file system stops.
  func beginHandover() { isLeft.store(true, ordering: .sequentiallyConsistent) }

  func add(_ unique: UInt64, caller: Int32, isPolled: Bool) {
    if unique != 0 { pending.withLock { $0[unique] = Entry(caller: caller, isPolled: isPolled) } }
  }

  func setPolled(_ isPolled: Bool, _ unique: UInt64) { pending.withLock { $0[unique]?.isPolled = isPolled } }

  func remove(_ unique: UInt64) {
    if unique != 0 { pending.withLock { _ = $0.removeValue(forKey: unique) } }
  }

  var callers: [UInt64: Int32] { pending.withLock { $0.mapValues(\.caller) } }

  /// Records that the caller is being killed.
  /// - Returns: whether the thread that works on the request is left to reply itself.
  func interrupt(_ unique: UInt64, now: TimeSpec) -> Bool {
    pending.withLock { pending in
      guard var entry = pending[unique] else { return false }
      let since = entry.interrupted ?? now
      entry.interrupted = since
      pending[unique] = entry
      return entry.isPolled && now < since.advanced(byMilliseconds: Self.grace)
    }
  }

  func isInterrupted(_ unique: UInt64) -> Bool { pending.withLock { $0[unique]?.interrupted != nil } }
}
