import Posix
import TestSupport
import Testing

@testable import BundleResources

@Suite struct LoaderPoolTests {
  private struct Count {
    var running = 0
    var most = 0
    var started: [Int] = []
    var ended = 0
    var isOpen = false
  }

  @Test(
    "runs all jobs in order, with the maximum number at once", .timeLimit(.minutes(1)), arguments: [1, 3])
  func limit(limit: Int) {
    let pool = LoaderPool(limit: limit)
    let count = Locked(Count())
    for number in 0..<1000 {
      pool.run {
        count.withLock { count in
          count.running += 1
          count.most = max(count.most, count.running)
          count.started.append(number)
        }
        // Blocks the first jobs until all are enqueued.
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
    // Later jobs start new threads.
    for _ in 0..<10 { pool.run { count.withLock { $0.ended += 1 } } }
    #expect(eventually(within: 20) { count.withLock { $0.ended } == 1010 })
  }

  @Test("releases finished jobs even while another one hangs", .timeLimit(.minutes(1)))
  func finished() {
    let pool = LoaderPool(limit: 2)
    let isOpen = Locked(false)
    let ended = Locked(0)
    pool.run { _ = eventually(within: 40) { isOpen.withLock { $0 } } }
    for number in 1...2000 {
      pool.run { ended.withLock { $0 += 1 } }
      if number % 100 == 0 {
        #expect(eventually(within: 20) { ended.withLock { $0 } == number })
        #expect(pool.slots <= 200, "after \(number)")
      }
    }
    isOpen.withLock { $0 = true }
    #expect(eventually(within: 20) { pool.slots == 0 })
  }
}
