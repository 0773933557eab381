import Fuse
import Posix
import Synchronization

/// A change that the announcer thread makes again in our own mount, only so that the kernel sends its events.
enum SyntheticChange: Hashable {
  /// No change: a lookup of a name that does not exist, which proves that the root is ours.
  case rootProbe([UInt8])
  case appearance(EntryKey, FileKind)
  case disappearance(EntryKey, isDirectory: Bool)
  case renaming(EntryKey, to: EntryKey)
  /// Sets the times of the file with this inode number.
  case touch(UInt64)
}

/// The request that the synthetic change in progress will cause: only this request is answered as if it changed
/// the mount.
///
/// One thread makes one synthetic change at a time. Its requests are recognized by the thread's number, which no
/// other request carries, by their kind and by their names.
final class ExpectedRequest: Sendable {
  enum LookupReply: Equatable {
    case absent
    case tombstone(isDirectory: Bool)
    case node(of: EntryKey)
  }

  private struct State {
    var change: SyntheticChange?
    var wasReceived = false
    /// Whether the kernel looked up the name that disappears, or the old name of a renaming.
    var wasLookedUp = false
  }

  private let thread = Atomic<Int32>(0)
  private let state = Locked(State())

  func setThread(_ number: Int32) { thread.store(number, ordering: .relaxed) }

  /// Whether a request is the announcer thread's. 0 stands for any thread outside our PID namespace.
  @inline(__always)
  func isOwn(_ caller: Caller) -> Bool {
    caller.thread != 0 && caller.thread == thread.load(ordering: .relaxed)
  }

  /// Runs the body, which makes the system calls of a synthetic change.
  /// - Returns: whether the expected request was received. The result of the system calls proves nothing: they
  ///   may have reached another file system.
  func expect(_ change: SyntheticChange, _ body: () -> Void) -> Bool {
    state.withLock { $0 = State(change: change) }
    body()
    return state.withLock { state in
      defer { state = State() }
      return state.wasReceived
    }
  }

  /// The reply to a LOOKUP of the announcer thread; nil if it is answered as any other.
  func reply(toLookup key: EntryKey) -> LookupReply? {
    state.withLock { state in
      switch state.change {
      case .rootProbe(let name) where key == EntryKey(parent: .root, name: name):
        state.wasReceived = true
        return .absent
      case .appearance(key, _): return .absent
      case .disappearance(key, let isDirectory):
        state.wasLookedUp = true
        return .tombstone(isDirectory: isDirectory)
      case .renaming(key, let target):
        state.wasLookedUp = true
        return .node(of: target)
      case .renaming(_, to: key): return .absent
      default: return nil
      }
    }
  }

  /// Accepts a request that creates an entry, once; nil if it is not the expected one.
  func consume(_ entry: NewEntryKind, at key: EntryKey) -> FileKind? {
    state.withLock { state in
      guard case .appearance(key, let kind) = state.change, kind.entry == entry, !state.wasReceived else {
        return nil
      }
      state.wasReceived = true
      return kind
    }
  }

  /// Accepts a request of the announcer thread, once; false if it is not the expected one.
  ///
  /// A removal is accepted only if it removes a tombstone. Without a LOOKUP before it, the kernel has a valid dentry of
  /// an entry that has come back, and would mark that entry's inode dead: reading the directory then fails with ENOENT.
  /// Nor is a renaming accepted without a LOOKUP of the old name: the kernel would give the new name to the file that
  /// has the old one by now, such as the next temporary file, which is still empty.
  func consume(_ request: SyntheticChange) -> Bool {
    state.withLock { state in
      guard state.change == request, !state.wasReceived else { return false }
      if request.needsLookup, !state.wasLookedUp { return false }
      state.wasReceived = true
      return true
    }
  }

  /// Cancels the expectation: the request failed after it was accepted.
  func revoke() { state.withLock { $0 = State() } }
}

extension SyntheticChange {
  fileprivate var needsLookup: Bool {
    switch self {
    case .disappearance, .renaming: true
    case .rootProbe, .appearance, .touch: false
    }
  }
}

extension FileKind {
  fileprivate var entry: NewEntryKind {
    switch self {
    case .directory: .directory
    case .symbolicLink: .symbolicLink
    default: .node
    }
  }
}
