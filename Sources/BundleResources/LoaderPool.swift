import Containers
import Dispatch
import Posix

/// The threads that a source's loads read on: few, and none while there is nothing to read. Each source has its
/// own, so that one whose mount hangs holds up no other.
///
/// URLSession's own threads are not for this: what they wait for holds up every task of the session, and a
/// task cannot be cancelled meanwhile.
final class LoaderPool: Sendable {
  private struct State {
    var jobs = Queue<@Sendable () -> Void>()
    var threads = 0
  }

  private let limit: Int
  private let state = Locked(State())

  /// - Parameter limit: the most threads at once.
  init(limit: Int) { self.limit = limit }

  /// How many slots the queue occupies, for tests.
  var slots: Int { state.withLock { $0.jobs.slots } }

  /// Runs a job soon, after those that wait.
  func run(_ job: @escaping @Sendable () -> Void) {
    let needsThread = state.withLock { state in
      state.jobs.enqueue(job)
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
      let job = state.jobs.dequeue()
      if job == nil { state.threads -= 1 }
      return job
    }
  }
}
