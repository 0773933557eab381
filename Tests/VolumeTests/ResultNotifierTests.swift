import Posix
import TestSupport
import Testing

@testable import Volume

/// When those who wait are told of a result.
@Suite struct ResultNotifierTests {
  @Test("without its thread at once, with it a moment later, and all in the end")
  func telling() throws {
    let calls = Locked(0)
    let notifier = try ResultNotifier { calls.withLock { $0 += 1 } }
    notifier.repliesSent(upTo: 1)
    #expect(notifier.latest == 1 && calls.withLock { $0 } == 1)
    // What is no news is not told.
    notifier.repliesSent(upTo: 1)
    #expect(calls.withLock { $0 } == 1)

    try notifier.start()
    notifier.repliesSent(upTo: 2)
    #expect(eventually(within: 5) { notifier.latest == 2 } && calls.withLock { $0 } == 2)
    let start = Clock.now
    for number in 3...1000 { notifier.repliesSent(upTo: UInt64(number)) }
    #expect(eventually(within: 5) { notifier.latest == 1000 })
    #expect(Clock.now - start >= 0.01, "the last was told too early")
    #expect(calls.withLock { $0 } < 500)
    notifier.repliesSent(upTo: 1001)
    notifier.stop()
    #expect(notifier.latest == 1001)
    notifier.repliesSent(upTo: 1002)
    #expect(notifier.latest == 1002)
  }

  @Test("from many threads: the last is told of, whichever comes last")
  func threads() throws {
    let notifier = try ResultNotifier {}
    try notifier.start()
    let running = Locked(8)
    for thread in 0..<8 {
      _ = try Thread(name: "news \(thread)") {
        for number in 1...2000 { notifier.repliesSent(upTo: UInt64(number * 8 + thread)) }
        running.withLock { $0 -= 1 }
      }
    }
    #expect(eventually(within: 20) { running.withLock { $0 } == 0 && notifier.latest == 16_007 })
    notifier.stop()
  }
}
