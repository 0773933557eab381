/// The places in an entry at which decoding can be resumed: copies of its decoders at growing positions.
struct DecoderIndex {
  private var copies: [EntryDecoder] = []
  private static let smallestSpacing: UInt64 = 2 << 20

  /// Bytes, approximately.
  var cost: Int { copies.count * (copies.first?.copyCost ?? 0) }

  /// Copies a decoder that is far enough beyond the last copy: by as few bytes as decoding takes some milliseconds for,
  /// but by so many that all copies take at most `limit` bytes.
  mutating func add(_ decoder: EntryDecoder, limit: Int) {
    let most = UInt64(max(1, limit / max(1, decoder.copyCost)))
    let spacing = max(Self.smallestSpacing, decoder.entry.node.size / most)
    let last = copies.last?.position ?? 0
    if decoder.position >= last + spacing, let copy = decoder.copy() { copies.append(copy) }
  }

  mutating func removeAll() { copies = [] }

  /// The last copy at or before an offset.
  func last(before offset: UInt64) -> EntryDecoder? {
    var (low, high) = (0, copies.count)
    while low < high {
      let middle = (low + high) / 2
      if copies[middle].position <= offset { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? nil : copies[low - 1]
  }
}

/// Seeking: where a decoder continues, so that a reader need not wait until everything before its range is decoded.
extension ArchiveContent {
  /// The decoder to resume for the first waiter; nil if everything must be decoded, since bytes of another state of the
  /// archive were returned, or if there is none.
  func resumption(_ state: State) -> EntryDecoder? {
    guard !state.continuesFormer, let waiter = state.waiters.first else { return nil }
    return state.index.last(before: waiter.range.lowerBound)
  }

  /// Resumes another decoder if the first waiter's range is not what is decoded next, and if that is less work; or
  /// begins anew if all waiters need a range that was discarded.
  func goToWaiters(_ state: inout State) {
    guard let first = state.waiters.first, state.storage != nil else { return }
    let lower = first.range.lowerBound
    if let copy = resumption(state), !state.wasOverwritten, state.storage?.isFile == true,
      lower < state.available.last.lowerBound || copy.position > state.available.end,
      let decoder = copy.copy()
    {
      state.decoder = decoder
      state.decodedHeader = state.header
      state.isComplete = false
      state.available.begin(at: decoder.position)
      state.target = first.range.upperBound
    } else if state.waiters.allSatisfy({ $0.range.lowerBound < state.available.last.lowerBound }) {
      reset(&state)
    }
  }

  /// Makes the next decoder begin with the entry.
  func restart(_ state: inout State) {
    state.index.removeAll()
    reset(&state)
  }
}
