import Fuse
import Posix
import TestSupport
import Testing

@testable import Volume

@Suite struct ResultNotifierTests {
  @Test("without its thread it notifies at once, with it after a delay, and before the thread ends")
  func delay() throws {
    let calls = Locked(0)
    let notifier = ResultNotifier { calls.withLock { $0 += 1 } }
    notifier.repliesSent(upTo: 1)
    #expect(notifier.latest == 1 && calls.withLock { $0 } == 1)
    notifier.repliesSent(upTo: 1)
    #expect(calls.withLock { $0 } == 1, "there is nothing new")

    try notifier.start(LayerWatchdog { _ in })
    notifier.repliesSent(upTo: 2)
    #expect(eventually(within: 5) { notifier.latest == 2 } && calls.withLock { $0 } == 2)
    let start = Clock.now
    for number in 3...1000 { notifier.repliesSent(upTo: UInt64(number)) }
    #expect(eventually(within: 5) { notifier.latest == 1000 })
    #expect(Clock.now - start >= 0.01, "the last notification came too early")
    #expect(calls.withLock { $0 } < 500)
    notifier.repliesSent(upTo: 1001)
    notifier.stop()
    #expect(notifier.latest == 1001)
    notifier.repliesSent(upTo: 1002)
    #expect(notifier.latest == 1002)
  }

  @Test("with many threads, the highest result is notified of, whichever thread is last")
  func threads() throws {
    let notifier = ResultNotifier {}
    try notifier.start(LayerWatchdog { _ in })
    let running = Locked(8)
    for thread in 0..<8 {
      _ = try Thread(name: "writer \(thread)") {
        for number in 1...2000 { notifier.repliesSent(upTo: UInt64(number * 8 + thread)) }
        running.withLock { $0 -= 1 }
      }
    }
    #expect(eventually(within: 20) { running.withLock { $0 } == 0 && notifier.latest == 16_007 })
    notifier.stop()
  }
}
