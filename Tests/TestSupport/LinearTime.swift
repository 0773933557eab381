import Glibc

/// Checks that a parser's time is proportional to the size of its input.
///
/// It measures the thread's processor time, so that other processes do not matter, and begins with small inputs, so
/// that a quadratic parser fails in seconds instead of hanging for hours. Builds without optimization skip the sizes
/// that would take them seconds.
public enum LinearTime {
  /// 20 KiB to 10 MiB; each size is eight times the one before.
  private static let sizes = [20 << 10, 160 << 10, 1280 << 10, 10 << 20]

  /// Runs a parser on growing inputs of one repeated token.
  /// - Parameters:
  ///   - start: what precedes the tokens.
  ///   - end: what follows them.
  /// - Throws: `TestFailure` if the time grows much faster than the input, which with eight times the input is 64
  ///   times for a quadratic parser.
  public static func check(
    repeating token: String, after start: String = "", before end: String = "", largest: Int = .max,
    _ parse: ([UInt8]) throws -> Void
  ) throws {
    try check(name: "\(start)\(token)…\(end)", largest: largest) {
      Array(start.utf8) + repeated(token, size: $0) + Array(end.utf8)
    } parse: {
      try parse($0)
    }
  }

  /// Doubles the text, since copying byte by byte takes minutes without optimization.
  private static func repeated(_ token: String, size: Int) -> [UInt8] {
    var text = Array(token.utf8)
    while text.count * 2 <= size { text += text }
    return text
  }

  /// Runs a function on growing inputs.
  /// - Parameters:
  ///   - largest: the largest size, in what `make` counts.
  ///   - make: makes an input of a size; not measured.
  public static func check<Input>(
    name: String, largest: Int = .max, make: (Int) throws -> Input, parse: (Input) throws -> Void
  ) throws {
    var former: (input: Input, time: Double)?
    for size in sizes where size <= largest {
      let input = try make(size)
      var time = try time { try parse(input) }
      if let former {
        var eighth = former.time
        for _ in 0..<attempts where time > limit(eighth) {
          // What else the machine does slows both.
          eighth = try self.time { try parse(former.input) }
          time = try self.time { try parse(input) }
        }
        if time > limit(eighth) {
          throw TestFailure("\(name): \(time) s for \(size) bytes, \(eighth) s for an eighth of them")
        }
      }
      if size == sizes[0], time > 5 { throw TestFailure("\(name): \(time) s for \(size) bytes") }
      #if DEBUG
      if size > sizes[0], time > 0.01 { return }
      #else
      if time > 1 { throw TestFailure("\(name): \(time) s for \(size) bytes") }
      #endif
      former = (input, time)
    }
  }

  /// How often both sizes are measured again if the greater one takes too long.
  private static let attempts = 5

  /// The most seconds that an input may take if an eighth of it takes these.
  private static func limit(_ eighth: Double) -> Double { 24 * eighth + 0.1 }

  /// The seconds of processor time of a function.
  private static func time(_ body: () throws -> Void) rethrows -> Double {
    let start = processorTime()
    try body()
    return processorTime() - start
  }

  private static func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
