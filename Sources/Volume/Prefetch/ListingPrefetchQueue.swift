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
/// that lists a directory often goes on to those in it.
///
/// Invariant: no directory is prefetched by two threads at a time.
final class ListingPrefetchQueue: Sendable {
  /// A directory, and what is prefetched of it; nil at first.
  struct Job: Sendable {
    let directory: NodeID
    fileprivate let generation: UInt64
    var prepared: PreparedListing?
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
    /// The job that was begun, unless a thread is working on it.
    var current: Job?
    /// Least recent first, each with the number of listings before it.
    var done: [(job: Job, time: UInt64)] = []
    var listings: UInt64 = 0
    /// Incremented by `clear`.
    var generation: UInt64 = 0
    /// How many more may be prefetched before there is another listing.
    var credit = 0
  }

  /// The most groups, as deep as most trees are, and the most directories of a group.
  static let maxGroups = 64
  static let maxGroupSize = 1024
  static let maxPerListing = 4
  static let maxPrepared = 48
  static let lifetime: UInt64 = 500

  private let state = Locked(State())

  /// Records that a directory, or a further page of it, was listed.
  /// - Parameter directories: those in it, in the order of the listing.
  /// - Returns: a job that was evicted, to be discarded.
  func add(_ directories: [NodeID], in parent: NodeID, isBegin: Bool) -> Job? {
    state.withLock { state in
      if isBegin { state.listings += 1 }
      let isFull = state.done.count >= Self.maxPrepared
      let former =
        isFull && state.listings - state.done[0].time > Self.lifetime ? state.done.removeFirst() : nil
      if isBegin { state.credit = Self.maxPerListing }
      if state.done.count >= Self.maxPrepared { state.credit = 0 }
      if directories.isEmpty { return former?.job }
      if let index = state.groups.lastIndex(where: { $0.parent == parent }) {
        let room = max(0, Self.maxGroupSize - state.groups[index].directories.count)
        state.groups[index].directories += directories.prefix(room)
      } else {
        state.groups.append(Group(parent: parent, directories: Array(directories.prefix(Self.maxGroupSize))))
        if state.groups.count > Self.maxGroups { state.groups.removeFirst() }
      }
      return former?.job
    }
  }

  var hasJob: Bool { state.withLock { $0.current != nil || ($0.credit > 0 && !$0.groups.isEmpty) } }

  /// Takes the job to continue or to begin; nil when there is none. The caller alone works on it.
  func take() -> Job? {
    state.withLock { state in
      if let current = state.current {
        state.current = nil
        return current
      }
      guard state.credit > 0, let next = Self.next(&state) else { return nil }
      state.credit -= 1
      return Job(directory: next, generation: state.generation)
    }
  }

  /// Records that a taken job is not worth beginning, so that another one may be taken.
  func skip() { state.withLock { $0.credit += 1 } }

  private static func next(_ state: inout State) -> NodeID? {
    guard let last = state.groups.indices.last else { return nil }
    let next = state.groups[last].directories[state.groups[last].begun]
    state.groups[last].begun += 1
    if state.groups[last].begun == state.groups[last].directories.count { state.groups.removeLast() }
    return next
  }

  /// Gives back a job that is to be continued.
  /// - Returns: the job that it replaces, or itself after `clear`, to be discarded.
  func putBack(_ job: Job) -> Job? {
    state.withLock { state in
      if job.generation != state.generation { return job }
      defer { state.current = job }
      return state.current
    }
  }

  /// Gives back a complete job; returns it after `clear`, to be discarded.
  func finish(_ job: Job) -> Job? {
    state.withLock { state in
      if job.generation != state.generation { return job }
      state.done.append((job, state.listings))
      // The first that were prefetched are used first, so none is evicted here.
      if state.done.count >= Self.maxPrepared { state.credit = 0 }
      return nil
    }
  }

  func job(of directory: NodeID) -> Job? {
    state.withLock { state in
      if state.current?.directory == directory {
        defer { state.current = nil }
        return state.current
      }
      guard let index = state.done.firstIndex(where: { $0.job.directory == directory }) else { return nil }
      return state.done.remove(at: index).job
    }
  }

  /// Takes all jobs out, to be discarded.
  func clear() -> [Job] {
    state.withLock { state in
      let next = state.generation + 1
      defer {
        state = State()
        state.generation = next
      }
      return state.done.map(\.job) + (state.current.map { [$0] } ?? [])
    }
  }
}
