import Posix

/// The queue of the invalidator thread. Invalidations of one subject are coalesced while they wait.
final class InvalidationQueue: Sendable {
  enum Work {
    case invalidate(Invalidation)
    /// To be called once all work before it is done.
    case barrier(@Sendable () -> Void)
  }
  private enum Entry {
    case subject(Invalidation.Subject)
    case barrier(@Sendable () -> Void)
  }
  private struct State {
    var entries: [Entry] = []
    var aspects: [Invalidation.Subject: Invalidation.Aspects] = [:]
    var isClosed = false
  }

  private let state = Locked(State())
  private let eventFD: EventFD

  init() throws(Errno) { eventFD = try EventFD() }

  /// Adds invalidations. One whose subject is in the queue is merged into that: the daemon's own state was changed
  /// before either.
  func add(_ invalidations: [Invalidation]) {
    if invalidations.isEmpty { return }
    state.withLock { state in
      for invalidation in invalidations {
        if state.aspects[invalidation.subject]?.formUnion(invalidation.aspects) != nil { continue }
        state.aspects[invalidation.subject] = invalidation.aspects
        state.entries.append(.subject(invalidation.subject))
      }
    }
    eventFD.signal()
  }

  /// Enqueues a function to be called once all work before it is done.
  /// - Returns: false if the queue is closed.
  func addBarrier(_ reached: @escaping @Sendable () -> Void) -> Bool {
    let isClosed = state.withLock { state in
      if !state.isClosed { state.entries.append(.barrier(reached)) }
      return state.isClosed
    }
    if !isClosed { eventFD.signal() }
    return !isClosed
  }

  /// Removes all work, oldest first, after waiting for some.
  /// - Returns: nil once the queue is closed and empty.
  func take() -> [Work]? {
    while true {
      let (work, isClosed) = state.withLock { state in
        defer {
          state.entries.removeAll(keepingCapacity: true)
          state.aspects.removeAll(keepingCapacity: true)
        }
        let work = state.entries.map { entry in
          switch entry {
          case .subject(let subject):
            Work.invalidate(Invalidation(subject: subject, aspects: state.aspects[subject] ?? []))
          case .barrier(let reached): Work.barrier(reached)
          }
        }
        return (work, state.isClosed)
      }
      if !work.isEmpty { return work }
      if isClosed { return nil }
      eventFD.wait(or: -1, milliseconds: -1)
    }
  }

  /// Closes the queue: `take` returns nil once it is empty.
  func end() {
    state.withLock { $0.isClosed = true }
    eventFD.signal()
  }
}
