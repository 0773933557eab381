import Glibc

/// What something cost, in nanoseconds an operation.
struct Cost: CustomStringConvertible {
  /// The time that passed.
  let elapsed: Double
  /// The processor's time that this process took of it, or, if it only waited for a program, that program.
  let processor: Double

  /// As scripts/bench reads it.
  var description: String { "\(elapsed) \(processor)" }

  /// Does something that returns how many operations it was.
  init(of body: () throws(Failure) -> Int) throws(Failure) {
    let start = now()
    let processorStart = now(CLOCK_PROCESS_CPUTIME_ID)
    let operations = Double(try body())
    let processorTime = now(CLOCK_PROCESS_CPUTIME_ID) - processorStart
    let time = now() - start
    guard operations > 0 else { throw Failure("there is nothing to do") }
    self.init(elapsed: Double(time) / operations, processor: Double(processorTime) / operations)
  }

  init(elapsed: Double, processor: Double) {
    self.elapsed = elapsed
    self.processor = processor
  }
}

/// Time that only goes forward, in nanoseconds.
func now(_ clock: clockid_t = CLOCK_MONOTONIC) -> Int {
  var time = timespec()
  clock_gettime(clock, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}
