/// For how long the kernel may keep what it is told.
public enum CacheMode: Sendable, Equatable, CustomStringConvertible {
  /// For ever: what becomes untrue is taken back.
  case coherent
  /// Not at all: each access asks.
  case none
  /// For so many seconds, whatever happens.
  case seconds(Double)

  /// As the option `cache=` has it.
  public var description: String {
    switch self {
    case .coherent: "coherent"
    case .none: "none"
    case .seconds(let seconds): seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
    }
  }

  /// In seconds; some 68 years, which the kernel takes for ever.
  static let forever = 2_147_483_647.0
  /// In seconds, for what cannot be watched.
  static let short = 1.0

  /// The seconds for which an answer may be kept.
  /// - Parameter isCovered: whether every change to it is told by a watch.
  func timeout(isCovered: Bool) -> Double {
    switch self {
    case .coherent: isCovered ? Self.forever : Self.short
    case .none: 0
    case .seconds(let seconds): seconds
    }
  }
}
