import Posix

/// What happens when an entry cannot be unpacked on.
extension ArchiveContent {
  /// Begins anew if the archive was replaced meanwhile; waits for that if its file was written over; and else
  /// notes the failure.
  /// - Returns: whether to go on.
  func fail(_ error: Errno, _ source: ArchiveSource) -> Bool {
    // Before anybody else may go on with it.
    cache.account(self, bytes: 0, isFile: false)
    let isParked = state.withLock { state -> Bool in
      if source !== (state.unpacked ?? state.place).source { return false }
      Self.reset(&state)
      if source !== state.place.source { return false }
      if error.isPassing || source.isUnchanged {
        state.failure = error
        return false
      }
      let deadline = source.deadline
      if state.isAbandoned || deadline <= .monotonic {
        state.failure = .staleFileHandle
        return false
      }
      state.parkedUntil = deadline
      return true
    }
    if isParked { cache.park(self) }
    return !isParked
  }

  /// Tells those who wait for an archive to be read anew that it is lost.
  /// - Parameter now: leaves it if its time has not come by then; nil: whatever the time.
  /// - Returns: whether it does not wait any more.
  @discardableResult
  func endParking(by now: TimeSpec? = nil) -> Bool {
    let outcome = state.withLock { state -> (Bool, [Waiter], Errno?)? in
      guard let deadline = state.parkedUntil else { return (false, [], nil) }
      if let now, deadline > now { return nil }
      state.parkedUntil = nil
      state.failure = .staleFileHandle
      return next(&state)
    }
    guard let (_, arrived, failure) = outcome else { return false }
    for waiter in arrived { waiter.arrived(failure) }
    return true
  }
}

extension Errno {
  /// Whether it says nothing of the content itself.
  var isPassing: Bool {
    self == .noMemory || self == .noSpace || self == .tooManyOpenFiles || self == .staleFileHandle
  }
}
