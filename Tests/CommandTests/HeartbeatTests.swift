import Testing

@testable import Holder

@Suite struct HeartbeatTests {
  /// What a holder finds after each period, if the counter has these values then.
  private func findings(_ beats: [UInt64]) -> [Bool] {
    let state = UnsafeMutablePointer<HolderState>.allocate(capacity: 1)
    defer { state.deallocate() }
    state.initialize(to: HolderState())
    var watch = HeartbeatWatch(Watchdog(milliseconds: 1000), state)
    return beats.map { beat in
      state.pointee.heartbeat = beat
      return watch.findsHang()
    }
  }

  @Test("a counter that stands still for two periods in a row is a hang")
  func hang() {
    #expect(findings([5, 5, 5]) == [false, false, true])
    #expect(findings([5, 5, 6, 6, 6]) == [false, false, false, false, true])
  }

  @Test("a counter that runs late is none")
  func busy() { #expect(findings([1, 1, 2, 2, 3, 3, 9]).allSatisfy { !$0 }) }

  @Test("a worker that is only starting has no counter yet")
  func start() { #expect(findings([0, 0, 0, 0, 1, 1]).allSatisfy { !$0 }) }
}
