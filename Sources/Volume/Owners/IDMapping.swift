/// Which user or group ID the mount shows for one of the layers.
public enum IDMapping: Sendable, Equatable {
  /// The same.
  case same
  /// This one for all.
  case constant(UInt32)
  /// By ranges, of which the first that has an ID counts; `overflow` for the rest.
  case ranges([IDRange])

  /// The kernel's `overflowuid` and `overflowgid`, for IDs that cannot be shown.
  public static let overflow: UInt32 = 65534

  /// - Returns: nil for an ID outside all ranges.
  public func shown(_ id: UInt32) -> UInt32? {
    switch self {
    case .same: return id
    case .constant(let shown): return shown
    case .ranges(let ranges):
      for range in ranges where id >= range.first && id - range.first < range.count {
        return range.shown + (id - range.first)
      }
      return nil
    }
  }
}

/// IDs that follow each other, and those that are shown for them: `HOST:CONTAINER:COUNT`.
public struct IDRange: Sendable, Equatable {
  public let first: UInt32
  public let shown: UInt32
  public let count: UInt32

  /// - Returns: nil for no ID, or if one is -1 or beyond.
  public init?(first: UInt32, shown: UInt32, count: UInt32) {
    // The last ID is at most 2^32 - 2.
    guard count > 0, first <= UInt32.max - count, shown <= UInt32.max - count else { return nil }
    (self.first, self.shown, self.count) = (first, shown, count)
  }
}
