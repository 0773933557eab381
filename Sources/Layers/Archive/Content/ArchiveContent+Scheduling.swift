import Posix

/// Which thread decodes: at most one at a time, the one that set `isDecoding`.
extension ArchiveContent {
  func readDecoded(_ range: Range<UInt64>, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Bool {
    let (storage, needsMore) = try state.withLock { state throws(Errno) -> (ContentStorage?, Bool) in
      if let failure = state.failure { throw failure }
      guard let storage = state.storage, state.available.contains(range) else { return (nil, false) }
      let isNear = range.upperBound + readAhead / 2 > state.available.end
      let isLast = state.available.last.contains(range)
      let needsMore = isNear && isLast && !state.isComplete && !state.isDecoding
      if needsMore {
        state.isDecoding = true
        state.target = max(state.target, range.upperBound + readAhead)
      }
      return (storage, needsMore)
    }
    guard let storage else { return false }
    if needsMore { decodeAsynchronously() }
    try storage.read(into: buffer, at: range.lowerBound)
    cache.touch(self)
    return state.withLock { state in
      // The storage may have been evicted or replaced during the read.
      guard state.storage === storage, state.available.contains(range) else { return false }
      let isVerified = state.isComplete || state.verifiedEnd == size
      record(&state, range, isVerified: isVerified && state.node.hasChecksum)
      return true
    }
  }

  /// Claims decoding for a reader that needs the beginning at once, unless all of a large entry has to be verified.
  func claimFirstDecoding() -> Bool {
    let isWhole = state.withLock { isLarge && $0.continuesFormer }
    return !isWhole && claimDecoding()
  }

  /// - Returns: false if another thread decodes.
  func claimDecoding() -> Bool {
    state.withLock { state in
      defer { state.isDecoding = true }
      return !state.isDecoding
    }
  }

  func decodeAsynchronously() {
    if !cache.enqueue(self) { decodeSynchronously(to: 0) }
  }

  /// Decodes up to an offset on the calling thread, which must have claimed decoding; the pool does the rest.
  func decodeSynchronously(to end: UInt64) {
    state.withLock { $0.target = max($0.target, end) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: min(Self.chunkSize, Int(clamping: size + 1)), alignment: 16)
    defer { buffer.deallocate() }
    while decode(buffer, steps: 1) {
      // Other readers' ranges must not delay this thread. To wake another one for nothing would cost more than to
      // decode a small entry.
      let hasRange = state.withLock { $0.available.end >= end && !$0.isComplete }
      if hasRange, cache.enqueue(self) { return }
    }
  }

  /// Decodes further chunks; the calling thread must have claimed decoding.
  /// - Returns: false if there is nothing to do for now; then the claim is released, or the content waits
  ///   for a reload.
  func decode(_ buffer: UnsafeMutableRawBufferPointer, steps: Int) -> Bool {
    for _ in 0..<steps {
      let next = state.withLock { nextStep(&$0) }
      next.complete()
      guard next.continues, step(buffer) else { return false }
    }
    return true
  }

  struct NextStep {
    var continues: Bool
    /// The waiters to complete without the lock, and their error.
    var completed: [Waiter] = []
    var failure: Errno?

    func complete() {
      for waiter in completed { waiter.completion(failure) }
    }
  }

  /// Moves the waiters whose ranges are available, or all on an error, to the result.
  func nextStep(_ state: inout State) -> NextStep {
    let (available, failure) = (state.available, state.failure)
    var next = NextStep(continues: true, failure: failure)
    next.completed = state.waiters.filter { failure != nil || available.contains($0.range) }
    if !next.completed.isEmpty {
      state.waiters.removeAll { failure != nil || available.contains($0.range) }
    }
    if failure?.isTransient == true {
      state.failure = nil
      if state.waiters.isEmpty { state.target = 0 }
    }
    if failure != nil || isIdle(state) {
      state.isDecoding = !state.waiters.isEmpty
      next.continues = state.isDecoding
    } else {
      goToWaiters(&state)
    }
    return next
  }

  private func isIdle(_ state: State) -> Bool {
    state.waiters.isEmpty && (state.isComplete || state.available.end >= min(size, state.target))
  }

  func reset(_ state: inout State) {
    state.storage = nil
    state.decoder = nil
    state.decodedHeader = nil
    state.available = DecodedRanges()
    state.isComplete = false
    state.wasOverwritten = false
    state.target = state.waiters.reduce(0) { max($0, $1.range.upperBound + readAhead) }
  }
}

extension ArchiveContent {
  /// Restarts if the content was moved to another archive, waits for a reload if the file was overwritten,
  /// and otherwise records the error.
  /// - Returns: whether to continue.
  func fail(_ error: Errno, _ source: ArchiveSource) -> Bool {
    // Before another thread may claim decoding.
    cache.account(self, bytes: 0, isFile: false)
    let isWaiting = state.withLock { state -> Bool in
      if source !== (state.decodedHeader ?? state.header).source { return false }
      restart(&state)
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
    if isWaiting { cache.reloadWaiters.add(self) }
    return !isWaiting
  }

  /// - Parameter now: only if the deadline has passed by then; nil: in any case.
  /// - Returns: whether the content no longer waits.
  @discardableResult
  func endReloadWait(by now: TimeSpec? = nil) -> Bool {
    let next = state.withLock { state -> NextStep? in
      guard let deadline = state.reloadDeadline else { return NextStep(continues: false) }
      if let now, deadline > now { return nil }
      state.reloadDeadline = nil
      state.failure = .staleFileHandle
      return nextStep(&state)
    }
    next?.complete()
    return next != nil
  }
}

extension Errno {
  /// Whether the error says nothing about the content.
  var isTransient: Bool {
    let transient: [Errno] = [
      .noMemory, .noSpace, .tooManyOpenFiles, .staleFileHandle, .timedOut, .remoteIOError,
    ]
    return transient.contains(self)
  }
}
