import Posix

/// Counts requests by the time from their receipt until they were answered, or left to a thread that answers them later, as
/// waiting programs are. FORGET, which has no reply, is not counted.
public final class RequestLatencies: Sendable {
  /// The buckets' upper bounds in microseconds. One more bucket has none.
  public static let bounds: [UInt64] = [
    10, 20, 50, 100, 200, 500, 1000, 5000, 20_000, 100_000, 500_000, 2_000_000, 10_000_000,
  ]

  private let limits = bounds.map { $0 * 1000 }
  private let buckets = (0...bounds.count).map { _ in Counter() }
  private let nanoseconds = Counter()

  init() {}

  /// Counts a request.
  /// - Parameter received: when it was received, in nanoseconds of the monotonic clock.
  func record(since received: UInt64) {
    let time = TimeSpec.monotonicNanoseconds &- received
    var index = 0
    while index < limits.count, time > limits[index] { index += 1 }
    buckets[index].add(1)
    nanoseconds.add(time)
  }

  /// The number of requests in each bucket.
  public var counts: [UInt64] { buckets.map(\.count) }

  /// The sum of all times, in microseconds.
  public var microseconds: UInt64 { nanoseconds.count / 1000 }
}
