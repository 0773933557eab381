import TestSupport
import Testing

@testable import Fuse

/// `LeaderFollowers` behind a reference, so that `#expect` can call its mutating methods.
private final class Roles {
  var value: LeaderFollowers
  init(_ value: LeaderFollowers = LeaderFollowers()) { self.value = value }
  func join(_ worker: Int) -> Bool { value.join(worker) }
  func receive(hasMore: Bool) -> (promoted: Int?, watchdog: Int?) { value.receive(hasMore: hasMore) }
  func finish(_ worker: Int, hasMore: () -> Bool) -> Bool { value.finish(worker, hasMore: hasMore) }
  func wake(_ worker: Int) -> Bool { value.wake(worker) }
  func timeout(of worker: Int) -> CInt { value.timeout(of: worker) }
  var leaders: Int { value.leaders }
  var processing: Int { value.processing }
  var followers: [Int] { value.followers }
  var watchdog: Int? { value.watchdog }
  var isWatchdogAsleep: Bool { value.isWatchdogAsleep }
}

@Suite struct LeaderFollowersTests {
  /// Workers 0 to n-1, of which 0 is the leader.
  private func roles(_ workers: Int) -> Roles {
    let roles = Roles()
    for worker in 0..<workers { #expect(roles.join(worker) == (worker == 0)) }
    return roles
  }

  @Test("sequential requests are all processed by one worker")
  func sequential() {
    let roles = roles(3)
    for _ in 0..<100 {
      #expect(roles.receive(hasMore: false) == (nil, nil))
      #expect(roles.leaders == 0 && roles.processing == 1)
      #expect(roles.finish(0) { true })
    }
    #expect(roles.followers == [1, 2])
  }

  @Test("a worker that was added takes over from blocked ones, and retires once there is a leader")
  func retirement() {
    var roles = LeaderFollowers()
    let wasFirst = roles.join(0)
    _ = roles.receive(hasMore: false)
    let (wasLeader, retiredEarly) = (roles.join(1), roles.retire(1))
    // It polls twice: before, the other worker may have just received the request.
    let hasTakenOver = !roles.wake(1) && roles.wake(1)
    let retiredAsLeader = roles.retire(1)
    _ = roles.receive(hasMore: false)
    let (firstLeads, secondLeads) = (roles.finish(0) { false }, roles.finish(1) { false })
    let (hasRetired, again) = (roles.retire(1), roles.retire(1))
    #expect(wasFirst && !wasLeader && !retiredEarly && hasTakenOver && !retiredAsLeader)
    #expect(firstLeads && !secondLeads && hasRetired && !again)
    #expect(roles.followers.isEmpty && roles.watchdog == nil && roles.leaders == 1)
  }

  @Test(
    "a second pending request promotes a second worker, which becomes a follower when no more are pending")
  func parallel() {
    let roles = roles(3)
    #expect(roles.receive(hasMore: true).promoted == 2)
    #expect(roles.wake(2) && roles.leaders == 1)
    #expect(roles.receive(hasMore: true).promoted == 1)
    #expect(roles.receive(hasMore: true).promoted == nil, "no follower is left")
    #expect(roles.finish(0) { true } && roles.finish(1) { true })
    #expect(!roles.finish(2) { false } && roles.followers == [2] && roles.leaders == 2)
  }

  @Test("the watchdog takes over from a blocked worker, and not earlier")
  func blocked() {
    let roles = roles(3)
    #expect(roles.timeout(of: 1) == 1 && roles.timeout(of: 2) == -1)
    _ = roles.receive(hasMore: false)
    #expect(!roles.wake(1), "a request has just been read")
    #expect(!roles.wake(2), "only the watchdog takes over")
    #expect(roles.wake(1) && roles.leaders == 1 && roles.watchdog == 2)
    #expect(!roles.finish(0) { false }, "there is another leader")
  }

  @Test("the watchdog sleeps while no requests arrive, and the first one wakes it")
  func idle() {
    let roles = roles(2)
    for _ in 0..<LeaderFollowers.watchdogPatience {
      #expect(roles.timeout(of: 1) == 1)
      #expect(!roles.wake(1))
    }
    #expect(roles.timeout(of: 1) == -1 && roles.isWatchdogAsleep)
    #expect(roles.receive(hasMore: false) == (nil, 1))
    #expect(roles.timeout(of: 1) == 1)
  }

  @Test(
    "after any sequence each worker has one role, and a leader exists or will", arguments: [UInt64](1...16))
  func random(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let count = Int.random(in: 1...5, using: &random)
    let roles = roles(count)
    var (leaders, processing): (Set<Int>, Set<Int>) = ([0], [])
    for _ in 0..<5000 {
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        guard let worker = leaders.randomElement(using: &random) else { continue }
        leaders.remove(worker)
        processing.insert(worker)
        let promoted = roles.receive(hasMore: Bool.random(using: &random)).promoted
        if let promoted { leaders.insert(promoted) }
      case 1:
        guard let worker = processing.randomElement(using: &random) else { continue }
        processing.remove(worker)
        let hasMore = Bool.random(using: &random)
        if roles.finish(worker, hasMore: { hasMore }) { leaders.insert(worker) }
      default:
        guard let worker = roles.followers.randomElement(using: &random) else { continue }
        if roles.wake(worker) { leaders.insert(worker) }
      }
      #expect(roles.leaders == leaders.count && roles.processing == processing.count)
      #expect(Set(roles.followers) == Set(0..<count).subtracting(leaders).subtracting(processing))
      #expect(
        roles.followers.isEmpty
          ? roles.watchdog == nil : roles.followers.contains(roles.watchdog ?? -1))
      // Without a leader, the watchdog takes over within two polls.
      if leaders.isEmpty, let watchdog = roles.watchdog {
        #expect(roles.timeout(of: watchdog) == 1)
        let copy = Roles(roles.value)
        #expect(copy.wake(watchdog) || copy.wake(watchdog))
      }
    }
  }
}
