import Posix

/// Keeps idle processors from halting during bursts of requests (`CPULatencyRequest`). A thread of its own withdraws
/// the request a few milliseconds after the burst, even if all workers block.
final class LowLatencyMode: Sendable {
  /// The number of requests in a row, each within `AdaptiveSpin.limit`, that begin a burst.
  static let burstLength = 8
  /// A burst ends when fewer than `minRequests` arrive in `period` milliseconds.
  private static let (minRequests, period): (UInt64, CInt) = (5, 5)

  private let latencyRequest: CPULatencyRequest
  private let requests = Counter()
  private let wakeUp: EventFD
  private let isStopped = Locked(false)
  private let thread = Locked<ThreadHandle?>(nil)

  /// Starts the thread; nil without a latency request.
  /// - Throws: EAGAIN, EMFILE.
  init?(_ latencyRequest: CPULatencyRequest?) throws(Errno) {
    guard let latencyRequest else { return nil }
    self.latencyRequest = latencyRequest
    wakeUp = try EventFD()
    let handle = ThreadHandle(try Thread(name: "low latency") { [self] in run() })
    thread.withLock { $0 = handle }
  }

  /// Whether idle processors are kept awake.
  var isActive: Bool { latencyRequest.isActive }

  /// Counts a request.
  func countRequest() { requests.add(1) }

  /// Keeps idle processors awake until the burst ends.
  func activate() {
    if isActive { return }
    latencyRequest.setActive(true)
    wakeUp.signal()
  }

  /// Ends the thread.
  func stop() {
    isStopped.withLock { $0 = true }
    wakeUp.signal()
    thread.withLock { $0 }?.join()
  }

  private func run() {
    var lastCount: UInt64 = 0
    while !isStopped.withLock({ $0 }) {
      wakeUp.wait(or: -1, milliseconds: isActive ? Self.period : -1)
      let count = requests.count
      if count - lastCount < Self.minRequests { latencyRequest.setActive(false) }
      lastCount = count
    }
    latencyRequest.setActive(false)
  }
}
