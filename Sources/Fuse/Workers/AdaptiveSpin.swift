import Posix

/// Polls for the next request for a short time before the worker blocks in read(2). A wake-up takes a large part of
/// the time between a program's requests, and the scheduler often places the woken worker on the processor of the
/// program, where the two cannot run in parallel.
///
/// It backs off: after a spin without a request, it stops until some requests in a row have arrived within the
/// limit. Each such failure doubles that number, up to `maxBackoff`, so that a busy machine loses little time.
///
/// If the scheduler has placed the worker on the program's processor, the spin itself keeps the program from running:
/// it fails, and the request arrives once the worker sleeps. The two stay together for as long as other programs use
/// the other processors, so the worker backs off further, up to `maxSharedBackoff`, until a request arrives late.
struct AdaptiveSpin {
  /// The longest spin, in nanoseconds: long enough for a program to process the entries of a directory.
  static let limit: UInt64 = 100_000
  /// The largest number of short waits in a row that ends a back-off.
  static let maxBackoff = 8
  /// The same while program and worker seem to share a processor: a spin costs ten requests.
  static let maxSharedBackoff = 512

  private let isEnabled: Bool
  private let now: () -> UInt64
  private var waitStart: UInt64 = 0
  /// Short waits in a row that are still missing to spin again.
  private var remaining = 1
  private var backoff = 1
  /// When a spin ended without a request; nil after another one.
  private var failedAt: UInt64?
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
      backoff = max(backoff, min(backoff * 2, Self.maxBackoff))
      remaining = backoff
      failedAt = now()
      return
    }
    backoff = max(min(backoff, Self.maxBackoff) - 1, 1)
  }

  /// Records the request that was read after `wait`.
  mutating func received() {
    guard isEnabled else { return }
    let time = now()
    let isShort = time - waitStart < Self.limit
    streak = isShort ? streak + 1 : 0
    if let failedAt {
      self.failedAt = nil
      // A program on another processor would rarely make its request just then.
      if time - failedAt < Self.limit / 4 { backoff = min(backoff * 4, Self.maxSharedBackoff) }
    } else if !isShort {
      backoff = min(backoff, Self.maxBackoff)
    }
    if remaining > 0 { remaining = isShort ? remaining - 1 : backoff }
  }
}
