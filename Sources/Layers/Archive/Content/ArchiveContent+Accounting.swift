import Posix

extension ArchiveContent {
  static func cost(of state: State, written: UInt64) -> Int {
    Int(clamping: written - state.available.lowerBound) + overhead
      + (state.decoder == nil ? 0 : EntryDecoder.cost)
  }

  /// The most bytes of one entry that are kept.
  var residentLimit: UInt64 { UInt64(max(cache.budget, 16 << 20)) }

  /// Discards the beginning of an entry that exceeds the limit, up to the ranges that readers wait for.
  func trim(_ state: inout State, _ storage: ContentStorage) -> Range<UInt64> {
    let limit = residentLimit
    guard storage.isFile, state.available.count > limit else { return 0..<0 }
    var lower = state.available.upperBound - limit / 2
    for waiter in state.waiters where waiter.range.lowerBound >= state.available.lowerBound {
      lower = min(lower, waiter.range.lowerBound)
    }
    // Only whole pages can be returned to the file system.
    lower &= ~0xFFFF
    guard lower > state.available.lowerBound else { return 0..<0 }
    defer { state.available = lower..<state.available.upperBound }
    return state.available.lowerBound..<lower
  }

  /// Frees the decoded content.
  /// - Returns: nil on success; otherwise the memory in use, since a thread is decoding the entry.
  func evict() -> (bytes: Int, isFile: Bool)? {
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
