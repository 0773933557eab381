/// The leader/followers pattern: decides which worker reads the next request.
///
/// The kernel wakes the reader of `/dev/fuse` that has waited longest. If all workers read, they would take turns,
/// and each request would be processed by a thread that has slept, often on another processor. So one worker, the
/// leader, reads. The followers sleep until two requests are pending, or until the worker that processes the last
/// request blocks, for example on a disk.
///
/// One follower is the watchdog, which detects the latter: it polls every millisecond while requests arrive, and
/// takes over if none was read since its last poll. After `watchdogPatience` quiet polls it sleeps.
///
/// Invariants: every worker is a leader, processing, or a follower; one of the followers, if any, is the watchdog.
struct LeaderFollowers {
  /// Quiet polls in a row after which the watchdog sleeps.
  static let watchdogPatience = 20

  /// The number of workers that read a request or are about to.
  private(set) var leaders = 0
  /// The number of workers that process a request.
  private(set) var processing = 0
  /// The sleeping workers; the last one is promoted first.
  private(set) var followers: [Int] = []
  /// The follower that polls for a blocked worker.
  private(set) var watchdog: Int?
  /// Whether the watchdog sleeps until the next request.
  private(set) var isWatchdogAsleep = false
  private var received: UInt64 = 0
  private var receivedAtLastPoll: UInt64 = 0
  private var quietPolls = 0

  /// Adds a worker. The first one becomes the leader.
  /// - Returns: whether the worker is a leader; otherwise it is a follower.
  mutating func join(_ worker: Int) -> Bool {
    if leaders + processing == 0 {
      leaders = 1
      return true
    }
    addFollower(worker)
    return false
  }

  /// Records that a leader has read a request.
  /// - Parameter hasMore: whether another request is pending.
  /// - Returns: the followers to wake: the next leader, and the watchdog if it was asleep.
  mutating func receive(hasMore: Bool) -> (promoted: Int?, watchdog: Int?) {
    leaders -= 1
    processing += 1
    received &+= 1
    let promoted = hasMore && leaders == 0 ? promote() : nil
    guard isWatchdogAsleep, let watchdog else { return (promoted, nil) }
    isWatchdogAsleep = false
    quietPolls = 0
    return (promoted, watchdog)
  }

  /// Records that a worker has processed its request.
  /// - Parameter hasMore: whether another request is pending; called only if there is a leader.
  /// - Returns: whether the worker is a leader; otherwise it is a follower.
  mutating func finish(_ worker: Int, hasMore: () -> Bool) -> Bool {
    processing -= 1
    if leaders == 0 || hasMore() {
      leaders += 1
      return true
    }
    addFollower(worker)
    return false
  }

  /// Removes a follower, whose thread ends.
  /// - Returns: false if it was promoted meanwhile, or if it has to take over from a worker that blocks.
  mutating func retire(_ worker: Int) -> Bool {
    guard leaders > 0, let index = followers.firstIndex(of: worker) else { return false }
    followers.remove(at: index)
    if watchdog == worker {
      watchdog = followers.last
      isWatchdogAsleep = false
      quietPolls = 0
    }
    return true
  }

  /// Records that a follower was woken, or that its timeout has passed.
  /// - Returns: whether it is a leader.
  mutating func wake(_ worker: Int) -> Bool {
    // A promoted worker is no longer in the list.
    guard followers.contains(worker) else { return true }
    guard watchdog == worker, !isWatchdogAsleep else { return false }
    return poll(worker)
  }

  /// The number of requests received so far if every worker processes one; nil otherwise.
  var blockedSince: UInt64? { leaders == 0 && followers.isEmpty ? received : nil }

  /// Milliseconds that a follower may sleep; -1 for no limit.
  func timeout(of worker: Int) -> CInt { watchdog == worker && !isWatchdogAsleep ? 1 : -1 }

  private mutating func poll(_ watchdog: Int) -> Bool {
    defer { receivedAtLastPoll = received }
    if received != receivedAtLastPoll {
      quietPolls = 0
      return false
    }
    if leaders == 0 {
      followers.removeAll { $0 == watchdog }
      leaders += 1
      self.watchdog = followers.last
      return true
    }
    quietPolls += 1
    isWatchdogAsleep = quietPolls >= Self.watchdogPatience
    return false
  }

  private mutating func promote() -> Int? {
    guard let worker = followers.popLast() else { return nil }
    leaders += 1
    if watchdog == worker { watchdog = followers.last }
    return worker
  }

  private mutating func addFollower(_ worker: Int) {
    followers.append(worker)
    if watchdog == nil {
      watchdog = worker
      isWatchdogAsleep = false
      quietPolls = 0
    }
  }
}
