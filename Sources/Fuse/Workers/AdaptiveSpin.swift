import Posix

/// Polls for the next request for a short time before the worker blocks in read(2). A wake-up takes a large part of
/// the time between a program's requests, and the scheduler often places the woken worker on the processor of the
/// program, where the two cannot run in parallel.
///
/// It backs off: after a spin without a request, it stops until some requests in a row have arrived within the
/// limit. Each such failure doubles that number, up to `maxBackoff`, so that a busy machine loses little time.
struct AdaptiveSpin {
  /// The longest spin, in nanoseconds: long enough for a program to process the entries of a directory.
  static let limit: UInt64 = 100_000
  /// The largest number of short waits in a row that ends a back-off.
  static let maxBackoff = 8

  private let isEnabled: Bool
  private let now: () -> UInt64
  private var waitStart: UInt64 = 0
  /// Short waits in a row that are still missing to spin again.
  private var remaining = 1
  private var backoff = 1
  /// The number of requests in a row that arrived within the limit.
  var streak = 0

  /// - Parameters:
  ///   - processors: the number of processors; with one, spinning would only delay the program.
  ///   - now: a clock, in nanoseconds.
  init(processors: Int, now: @escaping () -> UInt64 = { TimeSpec.monotonicNanoseconds }) {
    isEnabled = processors > 1
    self.now = now
  }

  /// Spins until there is a request or the limit is reached; returns at once during a back-off.
  mutating func wait(_ hasRequest: () -> Bool) {
    guard isEnabled else { return }
    waitStart = now()
    if remaining > 0 { return }
    while !hasRequest() {
      if now() - waitStart < Self.limit { continue }
      backoff = min(backoff * 2, Self.maxBackoff)
      remaining = backoff
      return
    }
    backoff = max(backoff - 1, 1)
  }

  /// Records the request that was read after `wait`.
  mutating func received() {
    guard isEnabled else { return }
    let isShort = now() - waitStart < Self.limit
    streak = isShort ? streak + 1 : 0
    if remaining > 0 { remaining = isShort ? remaining - 1 : backoff }
  }
}
