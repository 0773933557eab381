import Posix

/// The room that an unpacked entry takes.
extension ArchiveContent {
  static func weight(of state: State, written: UInt64) -> Int {
    Int(clamping: written - state.present.lowerBound) + overhead
      + (state.inflater == nil ? 0 : EntryDecoder.weight)
  }

  /// Bytes of one entry that are kept at a time.
  var mostAtOnce: UInt64 { UInt64(max(cache.budget, 16 << 20)) }

  /// An entry that is larger than the whole budget is kept in part, where somebody reads.
  func narrow(_ state: inout State, _ storage: ContentStorage) -> Range<UInt64> {
    let limit = mostAtOnce
    guard storage.isFile, state.present.count > limit else { return 0..<0 }
    var lower = state.present.upperBound - limit / 2
    for waiter in state.waiters where waiter.range.lowerBound >= state.present.lowerBound {
      lower = min(lower, waiter.range.lowerBound)
    }
    // By whole pages, since only those can be given back.
    lower &= ~0xFFFF
    guard lower > state.present.lowerBound else { return 0..<0 }
    defer { state.present = lower..<state.present.upperBound }
    return state.present.lowerBound..<lower
  }

  /// Gives the room back.
  /// - Returns: nil if it did; else what is still taken, since it is being unpacked.
  func drop() -> (bytes: Int, isFile: Bool)? {
    let (former, taken) = state.withLock { state -> (AnyObject?, (bytes: Int, isFile: Bool)?) in
      guard let storage = state.storage else { return (nil, nil) }
      if state.isRunning {
        let written = max(state.inflater?.position ?? 0, state.present.upperBound)
        return (nil, (Self.weight(of: state, written: written), storage.isFile))
      }
      Self.reset(&state)
      return (storage, nil)
    }
    withExtendedLifetime(former) {}
    return taken
  }
}
