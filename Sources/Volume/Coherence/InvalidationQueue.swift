import Fuse
import Posix

/// The queue of the invalidator thread. Invalidations of one subject are coalesced while they wait.
final class InvalidationQueue: Sendable {
  enum Work {
    case invalidate(Invalidation)
    /// To be called once all work before it is done.
    case barrier(@Sendable () -> Void)
  }
  fileprivate struct State {
    var entries: [Work] = []
    /// The merged aspects of the invalidations in `entries`.
    var aspects: [Invalidation.Subject: Invalidation.Aspects] = [:]
    /// Whether one invalidation of the whole tree replaces all.
    var isCollapsed = false
    var isClosed = false
  }

  /// The most invalidations that wait.
  static let capacity = 100_000

  private let state = Locked(State())
  private let eventFD: EventFD

  init() throws(Errno) { eventFD = try EventFD() }

  /// Merges an invalidation into one of the same subject: the daemon's own state was changed before either.
  func add(_ invalidations: [Invalidation]) {
    if invalidations.isEmpty { return }
    state.withLock { state in
      for invalidation in invalidations where !state.isCollapsed || invalidation.subject == .inherited {
        state.add(invalidation)
      }
    }
    eventFD.signal()
  }

  /// - Returns: false if the queue is closed.
  func addBarrier(_ reached: @escaping @Sendable () -> Void) -> Bool {
    let isClosed = state.withLock { state in
      if !state.isClosed { state.entries.append(.barrier(reached)) }
      return state.isClosed
    }
    if !isClosed { eventFD.signal() }
    return !isClosed
  }

  /// Waits for work and removes all of it, oldest first; nil once the queue is closed and empty.
  func take() -> [Work]? {
    while true {
      let (work, isClosed) = state.withLock { state in
        defer {
          state.entries.removeAll(keepingCapacity: true)
          state.aspects.removeAll(keepingCapacity: true)
          state.isCollapsed = false
        }
        let work = state.entries.map { entry -> Work in
          guard case .invalidate(var invalidation) = entry else { return entry }
          invalidation.aspects = state.aspects[invalidation.subject] ?? []
          return .invalidate(invalidation)
        }
        return (work, state.isClosed)
      }
      if !work.isEmpty { return work }
      if isClosed { return nil }
      eventFD.wait(or: -1, milliseconds: -1)
    }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  func end() {
    state.withLock { $0.isClosed = true }
    eventFD.signal()
  }
}

extension InvalidationQueue.State {
  fileprivate mutating func add(_ invalidation: Invalidation) {
    if aspects[invalidation.subject]?.formUnion(invalidation.aspects) != nil { return }
    if aspects.count >= InvalidationQueue.capacity, invalidation.subject != .inherited { return collapse() }
    aspects[invalidation.subject] = invalidation.aspects
    entries.append(.invalidate(invalidation))
  }

  /// Replaces all invalidations by one of the whole tree. It comes before all barriers, since each may rely on one
  /// of those that it replaces. A comparison continues, since barriers wait for its end.
  private mutating func collapse() {
    let tree = Invalidation(subject: .subtree(.root))
    let kept = entries.filter {
      if case .invalidate(let other) = $0 { other.subject == .inherited } else { true }
    }
    entries = [.invalidate(tree)] + kept
    aspects = [tree.subject: tree.aspects]
    isCollapsed = true
  }
}
