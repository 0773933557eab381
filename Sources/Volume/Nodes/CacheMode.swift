/// How long the kernel may cache answers.
public enum CacheMode: Sendable, Equatable, CustomStringConvertible {
  /// Without limit: what changes is invalidated.
  case coherent
  case none
  /// For a number of seconds, whatever changes.
  case seconds(Double)

  /// The value of the option `cache=`.
  public var description: String {
    switch self {
    case .coherent: "coherent"
    case .none: "none"
    case .seconds(let seconds): seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
    }
  }

  /// In seconds; some 68 years.
  static let forever = 2_147_483_647.0
  /// In seconds, for what cannot be watched.
  static let short = 1.0

  /// Seconds for which an answer may be cached; `isCovered` if watches report every change to it.
  func timeout(isCovered: Bool) -> Double {
    switch self {
    case .coherent: isCovered ? Self.forever : Self.short
    case .none: 0
    case .seconds(let seconds): seconds
    }
  }
}
