import Posix

/// Entries that are unpacked: who reads them, and who has the right to unpack.
extension ArchiveContent {
  func readUnpacked(
    _ range: Range<UInt64>, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Bool {
    let (storage, needsMore) = try state.withLock { state throws(Errno) -> (ContentStorage?, Bool) in
      if let failure = state.failure { throw failure }
      guard let storage = state.storage, state.present.contains(range) else { return (nil, false) }
      let isNear = range.upperBound + Self.ahead / 2 > state.present.upperBound
      let needsMore = isNear && !state.isComplete && !state.isRunning
      if needsMore {
        state.isRunning = true
        state.wanted = max(state.wanted, range.upperBound + Self.ahead)
      }
      return (storage, needsMore)
    }
    guard let storage else { return false }
    if needsMore { unpackElsewhere() }
    try storage.read(into: buffer, at: range.lowerBound)
    cache.touch(self)
    return state.withLock { state in
      // What was being read may have been let go meanwhile, or be a former archive's.
      guard state.storage === storage, state.present.contains(range) else { return false }
      if !state.isComplete { doubt(&state) }
      return true
    }
  }

  /// Takes the right to unpack.
  /// - Returns: false if another has it.
  func begin() -> Bool {
    state.withLock { state in
      defer { state.isRunning = true }
      return !state.isRunning
    }
  }

  func unpackElsewhere() {
    if !cache.enqueue(self) { unpackHere(to: 0) }
  }

  /// Unpacks for who holds the right to; the rest, if others want it, is left to those whose work it is.
  /// - Parameter end: how far at least.
  func unpackHere(to end: UInt64) {
    state.withLock { $0.wanted = max($0.wanted, end) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: min(Self.chunkSize, Int(clamping: size) + 1), alignment: 16)
    defer { buffer.deallocate() }
    while proceed(buffer, steps: 1) {
      // What others want further on is not for this thread to wait for.
      if state.withLock({ $0.present.upperBound >= end }), cache.enqueue(self) { return }
    }
  }

  /// Unpacks on, for the thread that has the right to.
  /// - Returns: false when there is nothing more to do for now: then the right is given back, or it is parked.
  func proceed(_ buffer: UnsafeMutableRawBufferPointer, steps: Int) -> Bool {
    for _ in 0..<steps {
      let (goesOn, arrived, failure) = state.withLock { next(&$0) }
      for waiter in arrived { waiter.arrived(failure) }
      guard goesOn else { return false }
      if !step(buffer) { return false }
    }
    return true
  }

  /// Looks what is to be done next.
  /// - Returns: whether something is; and who has waited for long enough.
  func next(_ state: inout State) -> (Bool, [Waiter], Errno?) {
    let failure = state.failure
    let (present, hasFailed) = (state.present, failure != nil)
    let arrived = state.waiters.filter { hasFailed || present.contains($0.range) }
    if !arrived.isEmpty { state.waiters.removeAll { hasFailed || present.contains($0.range) } }
    if failure?.isPassing == true {
      state.failure = nil
      if state.waiters.isEmpty { state.wanted = 0 }
    }
    let isIdle =
      state.waiters.isEmpty && (state.isComplete || state.present.upperBound >= min(size, state.wanted))
    if hasFailed || isIdle {
      state.isRunning = !state.waiters.isEmpty
      return (state.isRunning, arrived, failure)
    }
    // All who wait want something that was let go.
    if !state.waiters.isEmpty, state.waiters.allSatisfy({ $0.range.lowerBound < present.lowerBound }) {
      Self.reset(&state)
    }
    return (true, arrived, nil)
  }

  static func reset(_ state: inout State) {
    state.storage = nil
    state.inflater = nil
    state.unpacked = nil
    state.present = 0..<0
    state.isComplete = false
    state.isUncertain = false
    state.wanted = state.waiters.reduce(0) { max($0, $1.range.upperBound + ahead) }
  }
}
