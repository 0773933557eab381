import Posix

/// Invalidations on their way to the thread that carries them out, each once while it waits.
final class InvalidationQueue: Sendable {
  /// What the thread is to do next.
  enum Work {
    case invalidate(Invalidation)
    /// Everything before it has been carried out.
    case barrier(@Sendable () -> Void)
  }
  private enum Entry {
    case subject(Invalidation.Subject)
    case barrier(@Sendable () -> Void)
  }
  private struct State {
    var entries: [Entry] = []
    var aspects: [Invalidation.Subject: Invalidation.Aspects] = [:]
    var isOver = false
  }

  private let state = Locked(State())
  private let eventFD: EventFD

  init() throws(Errno) { eventFD = try EventFD() }

  /// Adds invalidations. One that waits already stands for the new one, too: our own state was changed before
  /// either.
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

  /// Has a function called when all that was added before is carried out.
  /// - Returns: false after the end.
  func addBarrier(_ reached: @escaping @Sendable () -> Void) -> Bool {
    let isOver = state.withLock { state in
      if !state.isOver { state.entries.append(.barrier(reached)) }
      return state.isOver
    }
    if !isOver { eventFD.signal() }
    return !isOver
  }

  /// What waits, oldest first; waits until there is something. nil at the end.
  func take() -> [Work]? {
    while true {
      let (work, isOver) = state.withLock { state in
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
        return (work, state.isOver)
      }
      if !work.isEmpty { return work }
      if isOver { return nil }
      eventFD.wait(or: -1, milliseconds: -1)
    }
  }

  /// Lets `take` end when nothing waits any more.
  func end() {
    state.withLock { $0.isOver = true }
    eventFD.signal()
  }
}
