import Glibc

/// The cost of an operation in nanoseconds.
struct Cost: CustomStringConvertible {
  /// The elapsed time.
  let elapsed: Double
  /// The CPU time of this process or of the measured program.
  let processor: Double

  /// The format that scripts/bench reads.
  var description: String { "\(elapsed) \(processor)" }

  /// Measures the body, which returns the number of operations.
  init(of body: () throws(Failure) -> Int) throws(Failure) {
    let start = now()
    let processorStart = now(CLOCK_PROCESS_CPUTIME_ID)
    let operations = Double(try body())
    let processorTime = now(CLOCK_PROCESS_CPUTIME_ID) - processorStart
    let time = now() - start
    guard operations > 0 else { throw Failure("no operations") }
    self.init(elapsed: Double(time) / operations, processor: Double(processorTime) / operations)
  }

  init(elapsed: Double, processor: Double) {
    self.elapsed = elapsed
    self.processor = processor
  }
}

/// Calls `clock_gettime(2)`; nanoseconds.
func now(_ clock: clockid_t = CLOCK_MONOTONIC) -> Int {
  var time = timespec()
  clock_gettime(clock, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}
