import Testing

@testable import Fuse

@Suite struct SharedBurstTests {
  private static let step: UInt64 = 100_000

  /// Looks at a burst every 100 µs until it ends, and for 20 ms at most.
  private func duration(
    of burst: inout SharedBurst, requests: UInt64, strangers: Int32 = 0, awaitsDisk: Bool = false
  ) -> (state: SharedBurst.State, nanoseconds: UInt64) {
    let start = burst.now
    while burst.now - start < 20_000_000 {
      let state = burst.look(
        now: burst.now + Self.step, requests: requests, strangers: strangers, awaitsDisk: awaitsDisk)
      if state != .lasts { return (state, burst.now - start) }
    }
    return (.lasts, burst.now - start)
  }

  @Test("it ends some time after the last request", arguments: [false, true])
  func patience(awaitsDisk: Bool) {
    var burst = SharedBurst(now: 5, requests: 1)
    for request in UInt64(2)..<100 {
      let state = burst.look(
        now: burst.now + 3 * Self.step, requests: request, strangers: 0, awaitsDisk: awaitsDisk)
      #expect(state == .lasts)
    }
    let patience = awaitsDisk ? SharedBurst.diskPatience : SharedBurst.patience
    let end = duration(of: &burst, requests: 99, awaitsDisk: awaitsDisk)
    #expect(end.state == .isOver && end.nanoseconds == patience + Self.step)
  }

  @Test("it ends when the disk has answered and no more requests arrive")
  func afterDisk() {
    var burst = SharedBurst(now: 5, requests: 1)
    #expect(burst.look(now: 900_000, requests: 1, strangers: 0, awaitsDisk: true) == .lasts)
    #expect(burst.look(now: 1_000_000, requests: 2, strangers: 0, awaitsDisk: false) == .lasts)
    #expect(duration(of: &burst, requests: 2).state == .isOver)
  }

  @Test("another program that uses the processor, or makes requests, disturbs it")
  func disturbances() {
    var burst = SharedBurst(now: 5, requests: 1)
    let few = burst.look(now: 6, requests: 2, strangers: SharedBurst.maxStrangers - 1, awaitsDisk: false)
    #expect(few == .lasts)
    let many = burst.look(now: 7, requests: 3, strangers: SharedBurst.maxStrangers, awaitsDisk: false)
    #expect(many == .isDisturbed)
    burst = SharedBurst(now: 5, requests: 1)
    let short = burst.look(now: 5 + SharedBurst.longestGap, requests: 2, strangers: 0, awaitsDisk: true)
    #expect(short == .lasts)
    let long = burst.look(
      now: burst.now + SharedBurst.longestGap + 1, requests: 3, strangers: 0, awaitsDisk: true)
    #expect(long == .isDisturbed)
  }
}
