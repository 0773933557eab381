import ControlClient
import Glibc
import Posix
import TestSupport
import Testing

@Suite struct CancellationPipeTests {
  @Test("times out before a cancellation and returns at once after it")
  func wait() throws {
    let pipe = try CancellationPipe()
    let before = pipe.isCancelled || pipe.wait(milliseconds: 1)
    pipe.cancel()
    let after = pipe.isCancelled && pipe.wait(milliseconds: 60_000) && pipe.wait(milliseconds: 60_000)
    #expect(!before && after)
  }

  @Test("repeated cancellations do not block", .timeLimit(.minutes(1)))
  func full() throws {
    let pipe = try CancellationPipe()
    for _ in 0..<1_000_000 { pipe.cancel() }
    let isCancelled = pipe.isCancelled
    #expect(isCancelled)
  }

  @Test("wakes a waiting thread", .timeLimit(.minutes(1)))
  func wakesThread() throws {
    let pipe = Box(try CancellationPipe())
    let isAwake = Locked(false)
    let thread = try Thread(name: "waiter") {
      let isCancelled = pipe.value.wait(milliseconds: -1)
      isAwake.withLock { $0 = isCancelled }
    }
    pipe.value.cancel()
    thread.join()
    #expect(isAwake.withLock { $0 })
  }

  private final class Box: Sendable {
    let value: CancellationPipe
    init(_ value: consuming CancellationPipe) { self.value = value }
  }
}
