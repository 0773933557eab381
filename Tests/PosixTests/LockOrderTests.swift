import Posix
import Testing

/// What debug builds check of locks.
@Suite struct LockOrderTests {
  @Test("locks are taken in their order, the leaves last")
  func order() {
    let (first, second, leaf) = (Locked(order: 10, 1), Locked(order: 20, 2), Locked(3))
    for _ in 0..<2 {
      let sum = first.withLock { one in
        leaf.withLock { _ in }
        return second.withLock { two in leaf.withLock { one + two + $0 } }
      }
      #expect(sum == 6)
    }
    LockOrder.assertNoneIsHeld()
    second.withLock { _ in }
    first.withLock { _ in }
  }

  #if DEBUG
  private struct Balance: InvariantChecking {
    var value = 0
    func brokenInvariant() -> String? { value < 0 ? "overdrawn" : nil }
  }

  @Test("a lock that is taken out of its order stops the process")
  func wrongOrder() async {
    await #expect(processExitsWith: .failure) {
      let (first, second) = (Locked(order: 10, ()), Locked(order: 20, ()))
      second.withLock { _ in first.withLock { _ in } }
    }
    await #expect(processExitsWith: .failure) {
      let (one, other) = (Locked(order: 10, ()), Locked(order: 10, ()))
      one.withLock { _ in other.withLock { _ in } }
    }
  }

  @Test("a lock that is taken under a leaf stops the process")
  func underLeaf() async {
    await #expect(processExitsWith: .failure) {
      let (one, other) = (Locked(()), Locked(()))
      one.withLock { _ in other.withLock { _ in } }
    }
    await #expect(processExitsWith: .failure) {
      Locked(order: 10, ()).withLock { _ in LockOrder.assertNoneIsHeld() }
    }
  }

  @Test("a broken invariant stops the process when the lock is released")
  func invariant() async {
    await #expect(processExitsWith: .success) {
      Locked(Balance()).withLock { balance in
        balance.value = -1
        balance.value = 1
      }
    }
    await #expect(processExitsWith: .failure) { Locked(Balance()).withLock { $0.value = -1 } }
  }
  #endif
}
