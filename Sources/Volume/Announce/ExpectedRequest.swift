import Fuse
import Posix
import Synchronization

/// A change that the announcing thread is about to make in our own mount, though it has been made already: the
/// kernel then sends the events of it.
enum SyntheticChange: Hashable {
  /// No change: a look at a name that nothing has, by which the root shows to be ours.
  case rootProbe([UInt8])
  /// The name is made.
  case appearance(EntryKey, FileKind)
  /// The name is removed.
  case disappearance(EntryKey, isDirectory: Bool)
  /// The file of one name gets another.
  case renaming(EntryKey, to: EntryKey)
  /// The times of what has this inode number are set.
  case touch(UInt64)
}

/// Which replay is going on: its requests, and only those, are answered as if it were a change.
///
/// There is one at a time, made by one thread. A request is known for its own by that thread's number, which
/// nobody else's requests carry, by its kind, and by its names.
final class ExpectedRequest: Sendable {
  /// How a LOOKUP is answered that belongs to a replay.
  enum LookupReply: Equatable {
    /// That there is no such name.
    case absent
    /// By a node that stands for what went.
    case tombstone(isDirectory: Bool)
    /// By the node of another name, to which this one's file goes.
    case node(of: EntryKey)
  }

  private struct State {
    var replay: SyntheticChange?
    /// Whether what was expected came.
    var isMet = false
  }

  private let thread = Atomic<Int32>(0)
  private let state = Locked(State())

  /// Says which thread makes the replays.
  func setThread(_ number: Int32) { thread.store(number, ordering: .relaxed) }

  /// Whether a request is the announcing thread's. 0 is nobody's number.
  @inline(__always)
  func isOwn(_ caller: Caller) -> Bool {
    caller.thread != 0 && caller.thread == thread.load(ordering: .relaxed)
  }

  /// Runs the body, which makes the calls of a replay.
  /// - Returns: whether the request that matters came. The body's own result tells nothing: what it reached need
  ///   not have been our mount.
  func expect(_ replay: SyntheticChange, _ body: () -> Void) -> Bool {
    state.withLock { $0 = State(replay: replay) }
    body()
    return state.withLock { state in
      defer { state = State() }
      return state.isMet
    }
  }

  /// How a LOOKUP of the announcing thread is answered; nil: as everybody's.
  func reply(toLookup place: EntryKey) -> LookupReply? {
    state.withLock { state in
      switch state.replay {
      case .rootProbe(let name) where place == EntryKey(parent: .root, name: name):
        state.isMet = true
        return .absent
      case .appearance(place, _): return .absent
      case .disappearance(place, let isDirectory): return .tombstone(isDirectory: isDirectory)
      case .renaming(place, let target): return .node(of: target)
      case .renaming(_, to: place): return .absent
      default: return nil
      }
    }
  }

  /// What kind of entry is expected to be made; nil if none is. It is so once.
  func consume(_ entry: NewEntryKind, at place: EntryKey) -> FileKind? {
    state.withLock { state in
      guard case .appearance(place, let kind) = state.replay, kind.entry == entry, !state.isMet else {
        return nil
      }
      state.isMet = true
      return kind
    }
  }

  /// Notes that the request that was expected could not be answered.
  func revoke() { state.withLock { $0 = State() } }

  /// Whether a request of the announcing thread is the one that is expected. It is so once.
  func consume(_ request: SyntheticChange) -> Bool {
    state.withLock { state in
      guard state.replay == request, !state.isMet else { return false }
      state.isMet = true
      return true
    }
  }
}

extension FileKind {
  /// What makes an entry of this kind.
  fileprivate var entry: NewEntryKind {
    switch self {
    case .directory: .directory
    case .symbolicLink: .symbolicLink
    default: .node
    }
  }
}
