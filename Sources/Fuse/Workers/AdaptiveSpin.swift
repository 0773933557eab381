import Posix

/// Looking out for the next request for a moment before falling asleep. To be woken takes a good part of the time
/// that a program takes from one answer to its next request; and who is asleep is often woken on the processor
/// of the one who asks, so that both take turns where they could work at the same time.
///
/// It is done only as long as it pays: once a request did not come in time, the next ones are waited for asleep,
/// until some in a row have come so soon that it would have paid. Each failure doubles how many that takes, so
/// that little time is lost where it rarely pays, as on a busy machine.
struct AdaptiveSpin {
  /// For how long it is looked out, in nanoseconds: a program that walks a tree handles the entries of a folder
  /// meanwhile.
  static let limit: UInt64 = 100_000
  /// The most short waits in a row that it takes to try again.
  static let dearest = 8

  private let isPossible: Bool
  private let now: () -> UInt64
  private var began: UInt64 = 0
  /// How many short waits it takes still, and how many it takes after the next failure but for its doubling.
  private var missing = 1
  private var price = 1
  /// How many requests in a row have come so soon that it paid, or would have.
  var streak = 0

  /// - Parameters:
  ///   - processors: with a single one no program could run meanwhile.
  ///   - now: nanoseconds of a clock.
  init(processors: Int, now: @escaping () -> UInt64 = { TimeSpec.monotonicNanoseconds }) {
    isPossible = processors > 1
    self.now = now
  }

  /// Waits until there is a request, or until it is better to sleep.
  mutating func wait(_ hasRequest: () -> Bool) {
    guard isPossible else { return }
    began = now()
    if missing > 0 { return }
    while !hasRequest() {
      if now() - began < Self.limit { continue }
      price = min(price * 2, Self.dearest)
      missing = price
      return
    }
    price = max(price - 1, 1)
  }

  /// A request has been received after `wait`.
  mutating func received() {
    guard isPossible else { return }
    let isShort = now() - began < Self.limit
    streak = isShort ? streak + 1 : 0
    if missing > 0 { missing = isShort ? missing - 1 : price }
  }
}
