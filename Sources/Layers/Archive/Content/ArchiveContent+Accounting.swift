import Posix

/// The room that an unpacked entry takes.
extension ArchiveContent {
  static func cost(of state: State, written: UInt64) -> Int {
    Int(clamping: written - state.available.lowerBound) + overhead
      + (state.decoder == nil ? 0 : EntryDecoder.cost)
  }

  /// Bytes of one entry that are kept at a time.
  var residentLimit: UInt64 { UInt64(max(cache.budget, 16 << 20)) }

  /// An entry that is larger than the whole budget is kept in part, where somebody reads.
  func trim(_ state: inout State, _ storage: ContentStorage) -> Range<UInt64> {
    let limit = residentLimit
    guard storage.isFile, state.available.count > limit else { return 0..<0 }
    var lower = state.available.upperBound - limit / 2
    for waiter in state.waiters where waiter.range.lowerBound >= state.available.lowerBound {
      lower = min(lower, waiter.range.lowerBound)
    }
    // By whole pages, since only those can be given back.
    lower &= ~0xFFFF
    guard lower > state.available.lowerBound else { return 0..<0 }
    defer { state.available = lower..<state.available.upperBound }
    return state.available.lowerBound..<lower
  }

  /// Gives the room back.
  /// - Returns: nil if it did; else what is still taken, since it is being unpacked.
  func drop() -> (bytes: Int, isFile: Bool)? {
    let (former, taken) = state.withLock { state -> (AnyObject?, (bytes: Int, isFile: Bool)?) in
      guard let storage = state.storage else { return (nil, nil) }
      if state.isDecoding {
        let written = max(state.decoder?.position ?? 0, state.available.upperBound)
        return (nil, (Self.cost(of: state, written: written), storage.isFile))
      }
      Self.reset(&state)
      return (storage, nil)
    }
    withExtendedLifetime(former) {}
    return taken
  }
}
