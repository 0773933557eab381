import Posix
import Testing

@testable import Fuse

@Suite struct RequestLatenciesTests {
  @Test("a request is in the bucket of its time, and in the sum")
  func record() {
    let latencies = RequestLatencies()
    latencies.record(since: TimeSpec.monotonicNanoseconds)
    #expect(latencies.counts.reduce(0, +) == 1)
    let before = latencies.counts
    latencies.record(since: TimeSpec.monotonicNanoseconds - 3_000_000_000)
    let added = zip(latencies.counts, before).map { $0 - $1 }
    let index = added.firstIndex(of: 1)
    // On a busy machine it took longer.
    #expect(index.map { $0 >= RequestLatencies.bounds.firstIndex(of: 10_000_000).unsafelyUnwrapped } == true)
    #expect(added.reduce(0, +) == 1 && latencies.microseconds >= 3_000_000)
    latencies.record(since: TimeSpec.monotonicNanoseconds - 3_600_000_000_000)
    #expect(latencies.counts.last == 1)
  }
}
