import Posix
import Testing

@Suite struct RobustLocksTests {
  private let memory: SharedMemory
  private let locks: RobustLocks

  init() throws {
    memory = try SharedMemory(name: "tests", size: 8192)
    locks = RobustLocks(in: memory, at: 4096)
  }

  @Test("locks are free at first, in memory of zeros, too")
  func first() {
    #expect(locks.waitUntilFree(milliseconds: 0))
    locks.reset()
    #expect(locks.waitUntilFree(milliseconds: 0))
  }

  @Test("a lock is held until its release")
  func release() throws {
    locks.reset()
    let (held, checked) = (BlockingQueue<Void>(), BlockingQueue<Void>())
    let thread = try Posix.Thread(name: "holder") { [locks] in
      locks.acquire(RobustLocks.count - 1)
      held.enqueue(())
      _ = checked.dequeue()
      locks.release(RobustLocks.count - 1)
    }
    _ = held.dequeue()
    #expect(!locks.waitUntilFree(milliseconds: 1))
    checked.enqueue(())
    #expect(locks.waitUntilFree(milliseconds: 20_000))
    thread.join()
  }

  @Test("a thread's end frees its lock")
  func end() throws {
    locks.reset()
    try Posix.Thread(name: "holder") { [locks] in locks.acquire(0) }.join()
    #expect(locks.waitUntilFree(milliseconds: 20_000))
  }
}
