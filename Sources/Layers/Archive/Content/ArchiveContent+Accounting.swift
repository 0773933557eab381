import Posix

extension ArchiveContent {
  static func cost(of state: State, written: UInt64) -> Int {
    Int(clamping: state.available.count(upTo: written)) + overhead + state.index.cost
      + (state.decoder?.cost ?? 0)
  }

  /// The size up to which an entry continues a former state of the archive.
  var largestContinued: UInt64 { min(Self.largestContinued, residentLimit) }

  /// The most bytes of one entry that are kept. Even with a smaller budget, requests that the kernel sends out of order
  /// must find what was decoded for the first of them.
  var residentLimit: UInt64 { UInt64(max(cache.budget - EntryDecoder.usualCost, Self.smallestLimit)) }

  static let smallestLimit = 4 << 20

  var readAhead: UInt64 { min(Self.largestReadAhead, residentLimit / 4) }

  /// Sets the memory of the entry, of which a thread decodes bytes, and keeps to the cache's budget: evicts others, and
  /// then discards the beginning of this one.
  func account(_ storage: ContentStorage, written end: UInt64) {
    let bytes = state.withLock { $0.storage === storage ? Self.cost(of: $0, written: end) : 0 }
    let excess = cache.account(self, bytes: bytes, isFile: storage.isFile)
    let (discarded, rest) = state.withLock { state -> ([Range<UInt64>], Int) in
      guard state.storage === storage else { return ([], 0) }
      let limit =
        excess == 0
        ? residentLimit : UInt64(max(Self.smallestLimit, Int(clamping: state.available.count) - excess))
      let discarded = trim(&state, storage, to: limit)
      return (discarded, Self.cost(of: state, written: end))
    }
    if discarded.isEmpty { return }
    for range in discarded { storage.discard(range) }
    cache.account(self, bytes: rest, isFile: storage.isFile)
  }

  /// Discards decoded bytes of an entry that exceeds the limit: earlier ranges, then the beginning of the last, up to
  /// the ranges that readers wait for.
  private func trim(_ state: inout State, _ storage: ContentStorage, to limit: UInt64) -> [Range<UInt64>] {
    guard storage.isFile, state.available.count > limit else { return [] }
    var discarded = state.available.removeEarlier(toKeep: limit)
    guard state.available.count > limit else { return discarded }
    var lower = state.available.end - limit / 2
    for waiter in state.waiters where waiter.range.lowerBound >= state.available.last.lowerBound {
      lower = min(lower, waiter.range.lowerBound)
    }
    // Only whole pages can be returned to the file system.
    lower &= ~0xFFFF
    guard lower > state.available.last.lowerBound else { return discarded }
    discarded.append(state.available.last.lowerBound..<lower)
    state.available.removeBeginning(upTo: lower)
    return discarded
  }

  /// Frees the decoded content, and the second time the index.
  /// - Returns: nil if nothing is left; otherwise the memory in use: a thread is decoding the entry, or the index.
  func evict() -> (bytes: Int, isFile: Bool)? {
    let (former, taken) = state.withLock { state -> (AnyObject?, (bytes: Int, isFile: Bool)?) in
      guard let storage = state.storage else {
        state.index.removeAll()
        return (nil, nil)
      }
      if state.isDecoding {
        let written = max(state.decoder?.position ?? 0, state.available.end)
        return (nil, (Self.cost(of: state, written: written), storage.isFile))
      }
      reset(&state)
      return (storage, state.index.cost > 0 ? (state.index.cost + Self.overhead, false) : nil)
    }
    withExtendedLifetime(former) {}
    return taken
  }
}
