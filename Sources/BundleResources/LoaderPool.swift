import Dispatch
import Posix

/// The threads that a source's loads read on: few, and none while there is nothing to read. Each source has its
/// own, so that one whose mount hangs holds up no other.
///
/// URLSession's own threads are not for this: what they wait for holds up every task of the session, and a
/// task cannot be cancelled meanwhile.
final class LoaderPool: Sendable {
  private struct State {
    /// The jobs, in order; those before `next` are done.
    var jobs: [(@Sendable () -> Void)?] = []
    var next = 0
    var threads = 0
  }

  private let limit: Int
  private let state = Locked(State())

  /// - Parameter limit: the most threads at once.
  init(limit: Int) { self.limit = limit }

  /// How many jobs are kept, with the places of those that are done.
  var slots: Int { state.withLock { $0.jobs.count } }

  /// Runs a job soon, after those that wait.
  func run(_ job: @escaping @Sendable () -> Void) {
    let needsThread = state.withLock { state in
      state.jobs.append(job)
      guard state.threads < limit else { return false }
      state.threads += 1
      return true
    }
    guard needsThread else { return }
    do throws(Errno) {
      try Thread.startDetached(name: "resources") { [self] in work() }
    } catch {
      // The system has no room for one more thread. The caller's may be URLSession's, on which a load must not
      // suspend its task; Dispatch has threads, or waits for one.
      DispatchQueue.global().async { [self] in work() }
    }
  }

  private func work() {
    while let job = nextJob() { job() }
  }

  /// The next job; nil ends the thread.
  private func nextJob() -> (@Sendable () -> Void)? {
    state.withLock { state in
      guard state.next < state.jobs.count else {
        state.jobs = []
        state.next = 0
        state.threads -= 1
        return nil
      }
      let job = state.jobs[state.next].take()
      state.next += 1
      // Whenever half of them are done, so that each is moved once on the average.
      if state.next >= 32, state.next * 2 >= state.jobs.count {
        state.jobs.removeFirst(state.next)
        state.next = 0
      }
      return job
    }
  }
}
