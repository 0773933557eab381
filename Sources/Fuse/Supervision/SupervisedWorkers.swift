import Posix
import Synchronization

/// What the workers do, as the supervisor sees it.
final class SupervisedWorkers: Sendable {
  /// Milliseconds for which a call on a layer may take before the layer is isolated.
  private static let slowAfter: CInt = 1000
  /// Milliseconds for which all workers may be in the same calls before another one is added.
  private static let stalledAfter: CInt = 15
  /// Milliseconds without a stalled worker after which the supervisor no longer looks.
  private static let calmAfter: CInt = 200

  private struct State {
    var threads: Set<RequestThread> = []
    /// What each thread that processes a request has been doing, and since when.
    var activities: [RequestThread: (activity: ThreadActivity, since: TimeSpec)] = [:]
    var lastStall = TimeSpec(seconds: 0, nanoseconds: 0)
  }

  private let state = Locked(State())
  private let watched = Atomic(false)
  private let addWorker = Locked<(@Sendable () -> Void)?>(nil)

  /// - Parameter addWorker: adds a worker if every other one is processing a request.
  func configure(addWorker: @escaping @Sendable () -> Void) { self.addWorker.withLock { $0 = addWorker } }

  func add(_ thread: RequestThread) { state.withLock { _ = $0.threads.insert(thread) } }

  func remove(_ thread: RequestThread) {
    state.withLock { state in
      state.threads.remove(thread)
      state.activities[thread] = nil
    }
  }

  var isWatched: Bool { watched.load(ordering: .relaxed) }

  /// - Returns: whether it was not watched before.
  func beginWatch() -> Bool { !watched.exchange(true, ordering: .relaxed) }

  /// What the workers do that process a request of another thread, by its `unique`.
  var activities: [UInt64: ThreadActivity] {
    state.withLock { state in
      var activities: [UInt64: ThreadActivity] = [:]
      for thread in state.threads {
        let activity = thread.activity
        if activity.caller != 0 { activities[activity.request] = activity }
      }
      return activities
    }
  }

  /// Has a worker added if none is left that could read a request, and finds layers that have not answered in time.
  func check(now: TimeSpec, _ isSlow: (Int) -> Void) {
    if !isWatched { return }
    let (slow, isStalled, isCalm) = state.withLock { state in
      (Self.record(&state, now: now), Self.isStalled(state, now), Self.isCalm(&state, now))
    }
    for layer in slow { isSlow(layer) }
    if isStalled { addWorker.withLock { $0 }?() }
    if isCalm { watched.store(false, ordering: .relaxed) }
  }

  /// - Returns: the layers whose present call has taken too long.
  private static func record(_ state: inout State, now: TimeSpec) -> Set<Int> {
    var slow: Set<Int> = []
    for thread in state.threads {
      let activity = thread.activity
      guard activity.request != 0 else {
        state.activities[thread] = nil
        continue
      }
      guard let known = state.activities[thread], known.activity == activity else {
        state.activities[thread] = (activity, now)
        continue
      }
      state.lastStall = now
      if let layer = activity.layer, now.milliseconds(since: known.since) >= slowAfter { slow.insert(layer) }
    }
    return slow
  }

  /// Whether every thread has been in the same call for a while.
  private static func isStalled(_ state: State, _ now: TimeSpec) -> Bool {
    state.threads.allSatisfy { thread in
      state.activities[thread].map { now.milliseconds(since: $0.since) >= stalledAfter } ?? false
    }
  }

  private static func isCalm(_ state: inout State, _ now: TimeSpec) -> Bool {
    if state.lastStall.seconds == 0 { state.lastStall = now }
    guard now.milliseconds(since: state.lastStall) >= calmAfter else { return false }
    state.lastStall = TimeSpec(seconds: 0, nanoseconds: 0)
    return true
  }
}
