import Glibc
import Layers
import Posix
import TestSupport
import Testing

@testable import Volume

/// Loops whose threads wait in calls on layers.
@Suite struct FailoverLoopTests {
  /// A loop that records what it has handled; the elements in `blocking` wait in a call on layer 7 until `release`.
  private final class Fixture: Sendable {
    let queue = BlockingQueue<Int>()
    let handled = Locked<[Int]>([])
    let attempts = Locked<[Int]>([])
    let isolated = Locked<Set<Int>>([])
    let isReleased = Locked(false)
    let blocking: Set<Int>
    let inLayer: Bool

    init(blocking: Set<Int>, inLayer: Bool = true) {
      self.blocking = blocking
      self.inLayer = inLayer
    }

    func handle(_ element: Int) {
      attempts.withLock { $0.append(element) }
      if blocking.contains(element), isolated.withLock(\.isEmpty) {
        let former = inLayer ? LayerCall.begin(7) : 0
        while !isReleased.withLock({ $0 }) { usleep(1000) }
        if inLayer { LayerCall.end(former) }
      }
      handled.withLock { $0.append(element) }
    }

    func run(repeats: Bool, _ body: () throws -> Void) throws {
      let watchdog = try LayerWatchdog { [self] layer in isolated.withLock { _ = $0.insert(layer) } }
      let loop = FailoverLoop(
        name: "test", repeats: repeats, watchdog, take: { [queue] in queue.dequeue().map { [$0] } },
        handle: { [self] in handle($0) })
      try watchdog.start()
      try loop.start()
      defer {
        isReleased.withLock { $0 = true }
        queue.close()
        loop.join()
        watchdog.stop()
      }
      try body()
    }
  }

  @Test("another thread continues when a layer does not answer", arguments: [true, false])
  func failover(repeats: Bool) throws {
    let fixture = Fixture(blocking: [2])
    try fixture.run(repeats: repeats) {
      for element in 1...5 { fixture.queue.enqueue(element) }
      let expected = repeats ? [1, 2, 3, 4, 5] : [1, 3, 4, 5]
      #expect(eventually(within: 30) { fixture.handled.withLock { $0 } == expected })
      #expect(fixture.isolated.withLock { $0 } == [7])
      #expect(fixture.attempts.withLock { $0 } == (repeats ? [1, 2, 2, 3, 4, 5] : [1, 2, 3, 4, 5]))
      // The thread left behind handles nothing else.
      fixture.isReleased.withLock { $0 = true }
      #expect(
        eventually(within: 30) { fixture.handled.withLock { $0.count { $0 == 2 } } == (repeats ? 2 : 1) })
      for element in 6...20 { fixture.queue.enqueue(element) }
      #expect(eventually(within: 30) { fixture.handled.withLock { $0.suffix(15) } == Array(6...20) })
    }
  }

  @Test("what takes long outside of layers is waited for")
  func patience() throws {
    let fixture = Fixture(blocking: [2], inLayer: false)
    try fixture.run(repeats: true) {
      for element in 1...3 { fixture.queue.enqueue(element) }
      #expect(eventually(within: 30) { fixture.attempts.withLock { $0 } == [1, 2] })
      // Longer than a call on a layer may take.
      usleep(1_500_000)
      #expect(fixture.attempts.withLock { $0 } == [1, 2])
      fixture.isReleased.withLock { $0 = true }
      #expect(eventually(within: 30) { fixture.handled.withLock { $0 } == [1, 2, 3] })
      #expect(fixture.isolated.withLock(\.isEmpty))
    }
  }
}
