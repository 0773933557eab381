import Fuse
import Posix

/// A directory's listing, and the answers for its first names, found before anybody asked.
///
/// It is true as long as no change to the directory was told since the version of the snapshot: just as what the
/// kernel would keep, had it asked then. Of a directory in it, no change may have been told at all.
///
/// Each answer holds a lookup of its node: it is delivered, or forgotten.
struct PreparedListing: Sendable {
  let snapshot: ListingSnapshot
  /// In the order of the names' cookies: so many as were looked at. nil for one that is to be looked up when it
  /// is asked for.
  var answers: [EntryReply?] = []
}

/// The directories that are likely to be listed next, and their listings as far as they are prepared: who lists a
/// directory often goes on to those in it.
///
/// Invariant: no directory is prepared twice at a time.
final class ListingPrefetcher: Sendable {
  /// A directory, and what is prepared of it; nothing at the beginning.
  struct Job: Sendable {
    let directory: NodeID
    fileprivate let generation: UInt64
    var prepared: PreparedListing?
  }

  /// The directories in one that was listed, in the order in which they were.
  private struct Group {
    let parent: NodeID
    var directories: [NodeID]
    /// How many of them have been begun.
    var begun = 0
  }

  private struct State {
    /// What is to be prepared: the first of the last group is next. No group is used up.
    var groups: [Group] = []
    /// The one that is being prepared, unless somebody works at it.
    var begun: Job?
    /// The least recent one first, each with how many listings there had been.
    var done: [(job: Job, time: UInt64)] = []
    var listings: UInt64 = 0
    /// How often all was cleared.
    var generation: UInt64 = 0
    /// How many more are to be prepared before there is another listing.
    var credit = 0
  }

  /// The most groups: as deep as trees are, mostly; and the most directories of one.
  static let mostGroups = 64
  static let mostOfGroup = 1024
  /// How many are prepared after a listing, before there is another one.
  static let mostAtOnce = 4
  /// The most that are prepared and not yet asked for.
  static let mostPrepared = 48
  /// After how many listings one that nobody asked for makes room.
  static let patience: UInt64 = 500

  private let state = Locked(State())

  /// Notes that a directory was listed, or some more of it.
  /// - Parameters:
  ///   - directories: those in it, in the order in which they were listed.
  ///   - isBegin: whether it is the listing's beginning.
  /// - Returns: what nobody asked for in all that time, to be let go.
  func add(_ directories: [NodeID], in parent: NodeID, isBegin: Bool) -> Job? {
    state.withLock { state in
      if isBegin { state.listings += 1 }
      let isFull = state.done.count >= Self.mostPrepared
      let former =
        isFull && state.listings - state.done[0].time > Self.patience ? state.done.removeFirst() : nil
      if isBegin { state.credit = Self.mostAtOnce }
      if state.done.count >= Self.mostPrepared { state.credit = 0 }
      if directories.isEmpty { return former?.job }
      if let place = state.groups.lastIndex(where: { $0.parent == parent }) {
        let room = max(0, Self.mostOfGroup - state.groups[place].directories.count)
        state.groups[place].directories += directories.prefix(room)
      } else {
        state.groups.append(Group(parent: parent, directories: Array(directories.prefix(Self.mostOfGroup))))
        if state.groups.count > Self.mostGroups { state.groups.removeFirst() }
      }
      return former?.job
    }
  }

  /// Whether there is something to be gone on with, or begun.
  var hasJob: Bool { state.withLock { $0.begun != nil || ($0.credit > 0 && !$0.groups.isEmpty) } }

  /// What is to be gone on with, or begun; nil when there is nothing. It is the caller's alone then.
  func take() -> Job? {
    state.withLock { state in
      if let begun = state.begun {
        state.begun = nil
        return begun
      }
      guard state.credit > 0, let next = Self.next(&state) else { return nil }
      state.credit -= 1
      return Job(directory: next, generation: state.generation)
    }
  }

  /// Notes that what was taken is not worth beginning: another one may be taken in its stead.
  func passOver() { state.withLock { $0.credit += 1 } }

  private static func next(_ state: inout State) -> NodeID? {
    guard let last = state.groups.indices.last else { return nil }
    let next = state.groups[last].directories[state.groups[last].begun]
    state.groups[last].begun += 1
    if state.groups[last].begun == state.groups[last].directories.count { state.groups.removeLast() }
    return next
  }

  /// Gives back what is to be gone on with.
  /// - Returns: what took its place meanwhile, or itself if all was cleared, to be let go.
  func goOn(_ job: Job) -> Job? {
    state.withLock { state in
      if job.generation != state.generation { return job }
      defer { state.begun = job }
      return state.begun
    }
  }

  /// Gives back what is whole.
  /// - Returns: itself if all was cleared, to be let go.
  func finish(_ job: Job) -> Job? {
    state.withLock { state in
      if job.generation != state.generation { return job }
      state.done.append((job, state.listings))
      // Those that were prepared first are asked for first.
      if state.done.count >= Self.mostPrepared { state.credit = 0 }
      return nil
    }
  }

  /// What is prepared of a directory, for its only user.
  func job(of directory: NodeID) -> Job? {
    state.withLock { state in
      if state.begun?.directory == directory {
        defer { state.begun = nil }
        return state.begun
      }
      guard let place = state.done.firstIndex(where: { $0.job.directory == directory }) else { return nil }
      return state.done.remove(at: place).job
    }
  }

  /// Takes everything out, to be let go.
  func clear() -> [Job] {
    state.withLock { state in
      let next = state.generation + 1
      defer {
        state = State()
        state.generation = next
      }
      return state.done.map(\.job) + (state.begun.map { [$0] } ?? [])
    }
  }
}
