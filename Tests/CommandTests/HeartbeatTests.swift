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

  @Test("deaths of workers are counted for a time, at most eight of them")
  func deaths() {
    var state = HolderState()
    #expect(state.deaths(since: 0) == 0)
    for time in Int64(1)...3 { state.recordDeath(9, at: time * 100) }
    #expect(state.deaths == 3 && state.lastStatus == 9)
    #expect([0, 100, 101, 300, 301].map { state.deaths(since: $0) } == [3, 3, 2, 1, 0])
    for time in Int64(4)...20 { state.recordDeath(11, at: time * 100) }
    #expect(state.deaths == 20 && state.deaths(since: 0) == 8 && state.deaths(since: 1900) == 2)
  }
}
