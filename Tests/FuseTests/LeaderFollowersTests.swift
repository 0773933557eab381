import TestSupport
import Testing

@testable import Fuse

/// A roster behind a reference, so that what changes it can be expected to answer something.
private final class Rostered {
  var value: LeaderFollowers
  init(_ value: LeaderFollowers = LeaderFollowers()) { self.value = value }
  func join(_ thread: Int) -> Bool { value.join(thread) }
  func receive(hasMore: Bool) -> (called: Int?, lookout: Int?) { value.receive(hasMore: hasMore) }
  func finish(_ thread: Int, hasMore: () -> Bool) -> Bool { value.finish(thread, hasMore: hasMore) }
  func wake(_ thread: Int) -> Bool { value.wake(thread) }
  func beginIdleWork() -> Bool { value.beginIdleWork() }
  func endIdleWork() { value.endIdleWork() }
  func sleep(of thread: Int) -> CInt { value.sleep(of: thread) }
  var waiting: Int { value.waiting }
  var busy: Int { value.busy }
  var parked: [Int] { value.parked }
  var lookout: Int? { value.lookout }
  var lookoutSleeps: Bool { value.lookoutSleeps }
}

@Suite struct LeaderFollowersTests {
  /// Threads 0 to n-1, of which 0 waits.
  private func roster(_ threads: Int) -> Rostered {
    let roster = Rostered()
    for thread in 0..<threads { #expect(roster.join(thread) == (thread == 0)) }
    return roster
  }

  @Test("requests one after the other are all one thread's")
  func alone() {
    let roster = roster(3)
    for _ in 0..<100 {
      #expect(roster.receive(hasMore: false) == (nil, nil))
      #expect(roster.waiting == 0 && roster.busy == 1)
      #expect(roster.finish(0) { true })
    }
    #expect(roster.parked == [1, 2])
  }

  @Test("a second request calls a second thread, which goes when there is no more")
  func crowd() {
    let roster = roster(3)
    #expect(roster.receive(hasMore: true).called == 2)
    #expect(roster.wake(2) && roster.waiting == 1)
    #expect(roster.receive(hasMore: true).called == 1)
    #expect(roster.receive(hasMore: true).called == nil, "nobody is left")
    #expect(roster.finish(0) { true } && roster.finish(1) { true })
    #expect(!roster.finish(2) { false } && roster.parked == [2] && roster.waiting == 2)
  }

  @Test("the lookout takes over from one that is held up, and not before")
  func heldUp() {
    let roster = roster(3)
    #expect(roster.sleep(of: 1) == 1 && roster.sleep(of: 2) == -1)
    _ = roster.receive(hasMore: false)
    #expect(!roster.wake(1), "it has just come")
    #expect(!roster.wake(2), "only the lookout looks")
    #expect(roster.wake(1) && roster.waiting == 1 && roster.lookout == 2)
    #expect(!roster.finish(0) { false }, "the other one waits now")
  }

  @Test("who does something else for a moment is stood in for if it takes long, and waits again after it")
  func moment() {
    let roster = roster(2)
    #expect(roster.beginIdleWork())
    #expect(roster.waiting == 0 && roster.busy == 1)
    _ = roster.wake(1)
    #expect(roster.wake(1) && roster.waiting == 1)
    #expect(!roster.beginIdleWork(), "one at a time")
    roster.endIdleWork()
    #expect(roster.waiting == 2 && roster.busy == 0)
    // The first that has answered a request is off duty again.
    _ = roster.receive(hasMore: false)
    #expect(!roster.finish(0) { false } && roster.waiting == 1)
  }

  @Test("nobody does something else where nobody would take over")
  func noMoment() {
    #expect(!roster(1).beginIdleWork(), "there is no other")
    let roster = roster(2)
    for _ in 0..<LeaderFollowers.patience { _ = roster.wake(1) }
    #expect(!roster.beginIdleWork(), "the lookout sleeps")
    _ = roster.receive(hasMore: true)
    #expect(roster.wake(1) && roster.waiting == 1 && !roster.beginIdleWork(), "the other is busy")
  }

  @Test("the lookout sleeps while nothing comes, and is woken by the first request")
  func idle() {
    let roster = roster(2)
    for _ in 0..<LeaderFollowers.patience {
      #expect(roster.sleep(of: 1) == 1)
      #expect(!roster.wake(1))
    }
    #expect(roster.sleep(of: 1) == -1 && roster.lookoutSleeps)
    #expect(roster.receive(hasMore: false) == (nil, 1))
    #expect(roster.sleep(of: 1) == 1)
  }

  @Test("whatever happens, somebody waits or will, and everybody is somewhere", arguments: [UInt64](1...16))
  func random(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let count = Int.random(in: 1...5, using: &random)
    let roster = roster(count)
    var (waiting, busy): (Set<Int>, Set<Int>) = ([0], [])
    for _ in 0..<5000 {
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        guard let thread = waiting.randomElement(using: &random) else { continue }
        waiting.remove(thread)
        busy.insert(thread)
        if let called = roster.receive(hasMore: Bool.random(using: &random)).called { waiting.insert(called) }
      case 1:
        guard let thread = busy.randomElement(using: &random) else { continue }
        busy.remove(thread)
        let hasMore = Bool.random(using: &random)
        if roster.finish(thread, hasMore: { hasMore }) { waiting.insert(thread) }
      default:
        guard let thread = roster.parked.randomElement(using: &random) else { continue }
        if roster.wake(thread) { waiting.insert(thread) }
      }
      #expect(roster.waiting == waiting.count && roster.busy == busy.count)
      #expect(Set(roster.parked) == Set(0..<count).subtracting(waiting).subtracting(busy))
      #expect(roster.parked.isEmpty ? roster.lookout == nil : roster.parked.contains(roster.lookout ?? -1))
      // Who is parked while nobody waits takes over in two looks.
      if waiting.isEmpty, let lookout = roster.lookout {
        #expect(roster.sleep(of: lookout) == 1)
        let copy = Rostered(roster.value)
        #expect(copy.wake(lookout) || copy.wake(lookout))
      }
    }
  }
}
