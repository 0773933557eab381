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
    var former: Double?
    for size in sizes where size <= largest {
      let input = try make(size)
      let limit = former.map { 24 * $0 + 0.1 } ?? .infinity
      let time = try time(limit: limit) { try parse(input) }
      if let former, time > limit {
        throw TestFailure("\(name): \(time) s for \(size) bytes, \(former) s for an eighth of them")
      }
      if size == sizes[0], time > 5 { throw TestFailure("\(name): \(time) s for \(size) bytes") }
      #if DEBUG
        if size > sizes[0], time > 0.01 { return }
      #else
        if time > 1 { throw TestFailure("\(name): \(time) s for \(size) bytes") }
      #endif
      former = time
    }
  }

  /// The seconds of processor time of a function; if they exceed a limit, the least of five runs. Another process can
  /// make a run slower, but none faster.
  private static func time(limit: Double, _ body: () throws -> Void) rethrows -> Double {
    var least = try time(body)
    for _ in 0..<4 where least > limit { least = min(least, try time(body)) }
    return least
  }

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
