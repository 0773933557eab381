/// The seeds of randomized tests.
public enum Seeds {
  /// `count` consecutive seeds beginning with `BUNDLEFS_FIRST_SEED` or 0; only `BUNDLEFS_SEED` if that is set, to
  /// reproduce a failure.
  public static func chosen(_ count: Int) -> [UInt64] {
    if let seed = number("BUNDLEFS_SEED") { return [seed] }
    return Array(0..<UInt64(count)).map { first &+ $0 }
  }

  /// `BUNDLEFS_FIRST_SEED` or 0, added to the seed of a test that has a fixed one.
  public static var first: UInt64 { number("BUNDLEFS_FIRST_SEED") ?? 0 }

  private static func number(_ name: String) -> UInt64? { Binary.variable(name).flatMap { UInt64($0) } }
}

/// How long the tests run that find more the longer they run.
public enum TestLength {
  /// Whether `BUNDLEFS_ALL_TESTS` is set, as by `scripts/test --all`.
  public static let isFull = Binary.variable("BUNDLEFS_ALL_TESTS") != nil

  /// The value for a full or a brief run.
  public static func of<Value>(full: Value, brief: Value) -> Value { isFull ? full : brief }

  /// The steps of a random model: `BUNDLEFS_STEPS`, if that is set.
  public static func steps(full: Int, brief: Int) -> Int {
    Binary.variable("BUNDLEFS_STEPS").flatMap { Int($0) } ?? of(full: full, brief: brief)
  }
}
