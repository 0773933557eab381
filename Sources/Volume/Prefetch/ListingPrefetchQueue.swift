import Fuse
import Posix

/// A directory's listing and its first entries, found before a program asked.
///
/// It is valid while no change to the directory was reported since the snapshot's version, like what the kernel
/// would have cached at that time. No change at all may have been reported for a directory in it.
///
/// Each entry holds a lookup of its node, to be delivered or forgotten.
struct PreparedListing: Sendable {
  let snapshot: ListingSnapshot
  /// In the order of the names' cookies, as many as were looked up. nil for one to be looked up on request.
  var entries: [EntryReply?] = []
}

/// The directories that are likely to be listed next, and their listings as far as these are prefetched: a program
/// that lists a directory often goes on to those in it, to each with what is below it before the next one.
///
/// One thread, the prefetcher, takes the directories one after the other.
final class ListingPrefetchQueue: Sendable {
  /// A directory, and what is prefetched of it; nil at first.
  struct Job: Sendable {
    let directory: NodeID
    fileprivate let generation: UInt64
    var prepared: PreparedListing?
  }

  /// What a listing that a program asked for changes.
  struct Addition {
    /// A job that was evicted, to be discarded.
    var evicted: Job?
    /// Whether the prefetcher must be started.
    var starts = false
  }

  /// The directories in a directory that was listed, in the order of the listing.
  private struct Group {
    let parent: NodeID
    var directories: [NodeID]
    var begun = 0
  }

  private struct State {
    /// What is to be prefetched: the first of the last group is next. No group is used up.
    var groups: [Group] = []
    /// The directory that the prefetcher is working on; nil if the request for it came first.
    var current: NodeID?
    /// Least recent first, each with the number of listings before it.
    var done: [(job: Job, time: UInt64)] = []
    var listings: UInt64 = 0
    /// Incremented by `clear`.
    var generation: UInt64 = 0
    /// How many more may be prefetched before there is another listing.
    var credit = 0
    /// Whether the prefetcher runs or is about to.
    var isRunning = false
    /// Whether a job has been of use since the beginning.
    var isFollowed = false
    var isClosed = false
  }

  /// The most groups, as deep as most trees are, and the most directories of a group.
  static let maxGroups = 64
  static let maxGroupSize = 1024
  static let maxPerListing = 4
  static let maxPrepared = 48
  static let lifetime: UInt64 = 500

  private let state = Locked(State())
  /// How many listings programs have asked for.
  let listings = Counter()

  /// Records that a directory, or a further page of it, was listed.
  /// - Parameter directories: those in it that `finish` has not recorded, in the order of the listing.
  func add(_ directories: [NodeID], in parent: NodeID, isBegin: Bool) -> Addition {
    if isBegin { listings.add(1) }
    return state.withLock { state in
      if isBegin { state.listings += 1 }
      let isFull = state.done.count >= Self.maxPrepared
      var addition = Addition()
      if isFull, state.listings - state.done[0].time > Self.lifetime {
        addition.evicted = state.done.removeFirst().job
      }
      if isBegin { state.credit = Self.maxPerListing }
      if state.done.count >= Self.maxPrepared { state.credit = 0 }
      Self.add(directories, in: parent, &state)
      if !state.isRunning, !state.isClosed, state.credit > 0, !state.groups.isEmpty {
        (state.isRunning, addition.starts) = (true, true)
      }
      return addition
    }
  }

  private static func add(_ directories: [NodeID], in parent: NodeID, _ state: inout State) {
    if directories.isEmpty { return }
    if let index = state.groups.lastIndex(where: { $0.parent == parent }) {
      let room = max(0, maxGroupSize - state.groups[index].directories.count)
      state.groups[index].directories += directories.prefix(room)
    } else {
      state.groups.append(Group(parent: parent, directories: Array(directories.prefix(maxGroupSize))))
      if state.groups.count > maxGroups { state.groups.removeFirst() }
    }
  }

  /// The next job of the prefetcher; nil when there is none until another listing.
  func take() -> Job? {
    state.withLock { state in
      guard state.credit > 0, !state.isClosed, let next = Self.next(&state) else { return nil }
      state.credit -= 1
      state.current = next
      return Job(directory: next, generation: state.generation)
    }
  }

  private static func next(_ state: inout State) -> NodeID? {
    guard let last = state.groups.indices.last else { return nil }
    let next = state.groups[last].directories[state.groups[last].begun]
    state.groups[last].begun += 1
    if state.groups[last].begun == state.groups[last].directories.count { state.groups.removeLast() }
    return next
  }

  /// Records that a taken job is not worth beginning, so that another one may be taken.
  func skip() { state.withLock { $0.credit += 1 } }

  /// Whether no request for the directory of a taken job has come yet.
  func isWanted(_ job: Job) -> Bool {
    state.withLock { $0.current == job.directory && $0.generation == job.generation }
  }

  /// Gives back a complete job.
  /// - Parameter directories: those in its directory, which are prefetched before those beside it.
  /// - Returns: the job if it is no longer wanted, to be discarded.
  func finish(_ job: Job, _ directories: [NodeID]) -> Job? {
    state.withLock { state in
      if job.generation != state.generation || state.current != job.directory { return job }
      state.current = nil
      state.done.append((job, state.listings))
      Self.add(directories, in: job.directory, &state)
      // The first that were prefetched are used first, so none is evicted here.
      if state.done.count >= Self.maxPrepared { state.credit = 0 }
      return nil
    }
  }

  /// Whether a program has asked for what was prefetched, and is likely to go on.
  var isFollowed: Bool { state.withLock { $0.isFollowed } }

  /// Ends the prefetcher, unless there is a job.
  /// - Returns: whether it has to end; the next listing starts it again.
  func end() -> Bool {
    state.withLock { state in
      if state.credit > 0, !state.groups.isEmpty, !state.isClosed { return false }
      state.isRunning = false
      return true
    }
  }

  /// Takes a prefetched job out. One that is in progress is left to the request.
  func job(of directory: NodeID) -> Job? {
    state.withLock { state in
      if state.current == directory { state.current = nil }
      guard let index = state.done.firstIndex(where: { $0.job.directory == directory }) else { return nil }
      state.isFollowed = true
      return state.done.remove(at: index).job
    }
  }

  /// Takes all jobs out, to be discarded.
  func clear() -> [Job] {
    state.withLock { state in
      let jobs = state.done.map(\.job)
      var next = State()
      next.generation = state.generation + 1
      (next.isRunning, next.isClosed) = (state.isRunning, state.isClosed)
      state = next
      return jobs
    }
  }

  /// Lets the prefetcher end, and not begin again.
  func close() { state.withLock { $0.isClosed = true } }
}
