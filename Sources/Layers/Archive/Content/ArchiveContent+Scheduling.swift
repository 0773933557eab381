import Posix

/// Entries that are unpacked: who reads them, and who has the right to unpack.
extension ArchiveContent {
  func readDecoded(
    _ range: Range<UInt64>, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Bool {
    let (storage, needsMore) = try state.withLock { state throws(Errno) -> (ContentStorage?, Bool) in
      if let failure = state.failure { throw failure }
      guard let storage = state.storage, state.available.contains(range) else { return (nil, false) }
      let isNear = range.upperBound + Self.readAhead / 2 > state.available.upperBound
      let needsMore = isNear && !state.isComplete && !state.isDecoding
      if needsMore {
        state.isDecoding = true
        state.target = max(state.target, range.upperBound + Self.readAhead)
      }
      return (storage, needsMore)
    }
    guard let storage else { return false }
    if needsMore { decodeAsynchronously() }
    try storage.read(into: buffer, at: range.lowerBound)
    cache.touch(self)
    return state.withLock { state in
      // What was being read may have been let go meanwhile, or be a former archive's.
      guard state.storage === storage, state.available.contains(range) else { return false }
      if !state.isComplete { markUnverified(&state) }
      return true
    }
  }

  /// Takes the right to unpack.
  /// - Returns: false if another has it.
  func begin() -> Bool {
    state.withLock { state in
      defer { state.isDecoding = true }
      return !state.isDecoding
    }
  }

  func decodeAsynchronously() {
    if !cache.enqueue(self) { decodeSynchronously(to: 0) }
  }

  /// Unpacks for who holds the right to; the rest, if others want it, is left to those whose work it is.
  /// - Parameter end: how far at least.
  func decodeSynchronously(to end: UInt64) {
    state.withLock { $0.target = max($0.target, end) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: min(Self.chunkSize, Int(clamping: size) + 1), alignment: 16)
    defer { buffer.deallocate() }
    while decode(buffer, steps: 1) {
      // What others want further on is not for this thread to wait for.
      if state.withLock({ $0.available.upperBound >= end }), cache.enqueue(self) { return }
    }
  }

  /// Unpacks on, for the thread that has the right to.
  /// - Returns: false when there is nothing more to do for now: then the right is given back, or it is reloadWaiters.
  func decode(_ buffer: UnsafeMutableRawBufferPointer, steps: Int) -> Bool {
    for _ in 0..<steps {
      let (goesOn, completion, failure) = state.withLock { next(&$0) }
      for waiter in completion { waiter.completion(failure) }
      guard goesOn else { return false }
      if !step(buffer) { return false }
    }
    return true
  }

  /// Looks what is to be done next.
  /// - Returns: whether something is; and who has waited for long enough.
  func next(_ state: inout State) -> (Bool, [Waiter], Errno?) {
    let failure = state.failure
    let (present, hasFailed) = (state.available, failure != nil)
    let completion = state.waiters.filter { hasFailed || present.contains($0.range) }
    if !completion.isEmpty { state.waiters.removeAll { hasFailed || present.contains($0.range) } }
    if failure?.isTransient == true {
      state.failure = nil
      if state.waiters.isEmpty { state.target = 0 }
    }
    let isIdle =
      state.waiters.isEmpty && (state.isComplete || state.available.upperBound >= min(size, state.target))
    if hasFailed || isIdle {
      state.isDecoding = !state.waiters.isEmpty
      return (state.isDecoding, completion, failure)
    }
    // All who wait want something that was let go.
    if !state.waiters.isEmpty, state.waiters.allSatisfy({ $0.range.lowerBound < present.lowerBound }) {
      Self.reset(&state)
    }
    return (true, completion, nil)
  }

  static func reset(_ state: inout State) {
    state.storage = nil
    state.decoder = nil
    state.decodedHeader = nil
    state.available = 0..<0
    state.isComplete = false
    state.wasOverwritten = false
    state.target = state.waiters.reduce(0) { max($0, $1.range.upperBound + readAhead) }
  }
}

/// What happens when an entry cannot be unpacked on.
extension ArchiveContent {
  /// Begins anew if the archive was replaced meanwhile; waits for that if its file was written over; and else
  /// notes the failure.
  /// - Returns: whether to go on.
  func fail(_ error: Errno, _ source: ArchiveSource) -> Bool {
    // Before anybody else may go on with it.
    cache.account(self, bytes: 0, isFile: false)
    let isWaiting = state.withLock { state -> Bool in
      if source !== (state.decodedHeader ?? state.header).source { return false }
      Self.reset(&state)
      if source !== state.header.source { return false }
      if error.isTransient || source.isUnchanged {
        state.failure = error
        return false
      }
      let deadline = source.deadline
      if state.isDetached || deadline <= .monotonic {
        state.failure = .staleFileHandle
        return false
      }
      state.reloadDeadline = deadline
      return true
    }
    if isWaiting { cache.awaitReload(self) }
    return !isWaiting
  }

  /// Tells those who wait for an archive to be read anew that it is lost.
  /// - Parameter now: leaves it if its time has not come by then; nil: whatever the time.
  /// - Returns: whether it does not wait any more.
  @discardableResult
  func endReloadWait(by now: TimeSpec? = nil) -> Bool {
    let outcome = state.withLock { state -> (Bool, [Waiter], Errno?)? in
      guard let deadline = state.reloadDeadline else { return (false, [], nil) }
      if let now, deadline > now { return nil }
      state.reloadDeadline = nil
      state.failure = .staleFileHandle
      return next(&state)
    }
    guard let (_, completion, failure) = outcome else { return false }
    for waiter in completion { waiter.completion(failure) }
    return true
  }
}

extension Errno {
  /// Whether it says nothing of the content itself.
  var isTransient: Bool {
    self == .noMemory || self == .noSpace || self == .tooManyOpenFiles || self == .staleFileHandle
  }
}
