import Posix

/// How a worker waits for its next request, and on which processor.
struct WorkerPace {
  private var spin = AdaptiveSpin(processors: processorCount)
  private var binding = ProcessorBinding()
  private var burst = ChangeBurst()
  private var hasSpun = false
  private let lowLatency: LowLatencyMode?
  private let sharing: ProcessorSharing?

  init(_ lowLatency: LowLatencyMode?, _ sharing: ProcessorSharing?) {
    self.lowLatency = lowLatency
    self.sharing = sharing
  }

  /// Waits for a request for a short time without sleeping.
  /// - Parameter answering: the processor on which the file system wants its requests answered.
  mutating func wait(on answering: Int32?, _ hasRequest: () -> Bool) {
    binding.bind(to: answering ?? sharing?.processor)
    // While processors are awake, a wake-up is as fast as a spin. Beside the program, a spin keeps it from running.
    hasSpun = !(lowLatency?.isActive ?? false) && !binding.isBound
    if hasSpun { spin.wait(hasRequest) }
  }

  /// Records that a request has arrived.
  mutating func received() {
    lowLatency?.countRequest()
    guard hasSpun else { return }
    spin.received()
    if let lowLatency, spin.streak >= LowLatencyMode.burstLength {
      spin.streak = 0
      lowLatency.activate()
    }
  }

  /// Records what has arrived.
  mutating func record(_ header: RequestHeader) {
    guard let sharing else { return }
    sharing.record(caller: header.caller, awaitsDisk: header.isSynchronization)
    if hasSpun, burst.record(caller: header.caller, isChange: header.isChange, isShort: spin.streak > 0) {
      sharing.begin(beside: header.caller)
    }
  }
}
