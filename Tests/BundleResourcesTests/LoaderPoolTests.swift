import Posix
import TestSupport
import Testing

@testable import BundleResources

/// The threads that loads read on.
@Suite struct ReadingThreadsTests {
  private struct Count {
    var running = 0
    var most = 0
    var started: [Int] = []
    var ended = 0
    var isOpen = false
  }

  @Test(
    "as many jobs at once as allowed, all in the end, in order", .timeLimit(.minutes(1)), arguments: [1, 3])
  func limit(limit: Int) {
    let threads = LoaderPool(limit: limit)
    let count = Locked(Count())
    for number in 0..<1000 {
      threads.run {
        count.withLock { count in
          count.running += 1
          count.most = max(count.most, count.running)
          count.started.append(number)
        }
        // The first ones wait until the rest is waiting, too.
        _ = eventually(within: 20) { count.withLock { $0.isOpen } }
        count.withLock { count in
          count.running -= 1
          count.ended += 1
        }
      }
    }
    #expect(eventually(within: 20) { count.withLock { $0.running } == limit })
    #expect(count.withLock { $0.ended } == 0)
    count.withLock { $0.isOpen = true }
    #expect(eventually(within: 30) { count.withLock { $0.ended } == 1000 })
    #expect(count.withLock { $0.most } == limit)
    let started = count.withLock { $0.started }
    #expect(Set(started) == Set(0..<1000))
    if limit == 1 { #expect(started == Array(0..<1000)) }
    // Jobs that come later find threads again.
    for _ in 0..<10 { threads.run { count.withLock { $0.ended += 1 } } }
    #expect(eventually(within: 20) { count.withLock { $0.ended } == 1010 })
  }

  @Test("jobs that are done are forgotten, also while another one hangs", .timeLimit(.minutes(1)))
  func done() {
    let threads = LoaderPool(limit: 2)
    let isOpen = Locked(false)
    let ended = Locked(0)
    threads.run { _ = eventually(within: 40) { isOpen.withLock { $0 } } }
    for number in 1...2000 {
      threads.run { ended.withLock { $0 += 1 } }
      if number % 100 == 0 {
        #expect(eventually(within: 20) { ended.withLock { $0 } == number })
        #expect(threads.slots <= 200, "after \(number)")
      }
    }
    isOpen.withLock { $0 = true }
    #expect(eventually(within: 20) { threads.slots == 0 })
  }
}
