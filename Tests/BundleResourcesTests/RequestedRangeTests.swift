import Posix
import TestSupport
import Testing

@testable import BundleResources

/// The header `Range`, and waiting for a pool of threads.
@Suite struct RequestedRangeTests {
  @Test(
    "what RFC 9110 defines is read, other ranges are not",
    arguments: [
      ("bytes=0-0", .from(0, through: 0)), ("bytes=5-", .from(5, through: nil)), ("bytes=-5", .last(5)),
      ("Bytes=1-2", .from(1, through: 2)), ("bytes= 1-2 ", .from(1, through: 2)),
      ("bytes=-99999999999999999999", .last(.max)), ("bytes=-0", .last(0)), ("bytes=-", nil), ("bytes=", nil),
      ("bytes", nil), ("", nil), ("bytes=a-b", nil), ("bytes=2-1", nil), ("bytes=1-2-3", nil),
      ("bytes=+1-2", nil),
      ("bytes=٣-4", nil), ("bytes=0-1,2-3", nil), ("items=0-1", nil),
    ] as [(String, RequestedRange?)])
  func header(text: String, expected: RequestedRange?) { #expect(RequestedRange(text) == expected) }

  @Test("a part lies within the content")
  func parts() {
    for length in [0, 1, 10, .max] {
      for range in [
        .from(0, through: nil), .from(3, through: .max), .from(.max, through: .max), .last(0), .last(.max),
        .from(0, through: 0),
      ] as [RequestedRange] {
        let part = range.part(of: length)
        #expect(part.lowerBound >= 0 && part.upperBound <= length, "\(range) of \(length)")
      }
    }
    #expect(RequestedRange.from(2, through: 4).part(of: 10) == 2..<5)
    #expect(RequestedRange.last(3).part(of: 10) == 7..<10)
    #expect(RequestedRange.from(12, through: 15).part(of: 10).isEmpty)
  }

  @Test("a cancelled task does not wait for a job that blocks", .timeLimit(.minutes(1)))
  func blocked() async throws {
    let pool = LoaderPool(limit: 1)
    let (hasBegun, mayEnd) = (Locked(false), Locked(false))
    let task = Task {
      await pool.result {
        hasBegun.withLock { $0 = true }
        while !mayEnd.withLock({ $0 }) { Clock.sleep(0.01) }
        return .success(1)
      }
    }
    while !hasBegun.withLock({ $0 }) { await Task.yield() }
    task.cancel()
    let outcome = await task.value
    mayEnd.withLock { $0 = true }
    #expect(throws: (any Error).self) { _ = try outcome.get() }
    // A task that is cancelled before starts nothing.
    let other = Task {
      while !Task.isCancelled { await Task.yield() }
      return await pool.result { .success(2) }
    }
    other.cancel()
    let unstarted = await other.value
    #expect(throws: (any Error).self) { _ = try unstarted.get() }
  }
}
