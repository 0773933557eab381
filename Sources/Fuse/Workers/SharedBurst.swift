/// Finds out when a burst of changes ends for which a processor is shared.
struct SharedBurst {
  /// How long it lasts without a request, in nanoseconds.
  static let patience: UInt64 = 300_000
  /// The same while a request waits for a disk.
  static let diskPatience: UInt64 = 5_000_000
  /// The longest time without its processor after which the thread that keeps it busy goes on, in nanoseconds: watchers of
  /// layers run as briefly, programs that compute longer.
  static let longestGap: UInt64 = 1_000_000
  /// What ends a burst: eight requests of other programs in a row, or more than one in five for long. Those programs and
  /// this one could run in parallel.
  static let maxStrangers: Int32 = 32

  enum State: Equatable {
    case lasts
    /// No request arrives any more.
    case isOver
    /// Another program wanted the processor, or made requests.
    case isDisturbed
  }

  /// When the thread looked last, in nanoseconds.
  private(set) var now: UInt64
  private var lastRequest: UInt64
  private var requests: UInt64

  /// - Parameters:
  ///   - now: in nanoseconds.
  ///   - requests: how many have arrived so far.
  init(now: UInt64, requests: UInt64) {
    (self.now, self.lastRequest, self.requests) = (now, now, requests)
  }

  /// - Parameters:
  ///   - strangers: as `ProcessorSharing` counts them.
  ///   - awaitsDisk: whether the last request waits for a disk.
  mutating func look(now time: UInt64, requests: UInt64, strangers: Int32, awaitsDisk: Bool) -> State {
    let gap = time - now
    now = time
    if gap > Self.longestGap || strangers >= Self.maxStrangers { return .isDisturbed }
    if requests != self.requests { (self.requests, lastRequest) = (requests, now) }
    return now - lastRequest > (awaitsDisk ? Self.diskPatience : Self.patience) ? .isOver : .lasts
  }
}
