/// The seeds of tests that make things up at random.
public enum Seeds {
  /// So many seeds from 0 on; or from the number on that `BUNDLEFS_FIRST_SEED` has, for other things than last time;
  /// or the one that `BUNDLEFS_SEED` has, to see one thing again.
  public static func chosen(_ count: Int) -> [UInt64] {
    if let seed = number("BUNDLEFS_SEED") { return [seed] }
    return Array(0..<UInt64(count)).map { first &+ $0 }
  }

  /// What is added to the seed of a test that has one of its own.
  public static var first: UInt64 { number("BUNDLEFS_FIRST_SEED") ?? 0 }

  private static func number(_ name: String) -> UInt64? { Binary.variable(name).flatMap { UInt64($0) } }
}
