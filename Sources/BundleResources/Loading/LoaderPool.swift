import Containers
import Dispatch
import Posix

/// A thread pool for a source's loads, whose threads exit when the queue is empty. Each source has its own pool, so
/// that a hung mount blocks only its own loads.
///
/// Blocking one of URLSession's threads would block all tasks of the session, and their cancellation.
final class LoaderPool: Sendable {
  private struct State {
    var jobs = Queue<@Sendable () -> Void>()
    var threads = 0
  }

  /// The maximum number of threads.
  private let limit: Int
  private let state = Locked(State())

  init(limit: Int) { self.limit = limit }

  /// How many slots the queue occupies, for tests.
  var slots: Int { state.withLock { $0.jobs.slots } }

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
      // EAGAIN: too many threads. The calling thread may be URLSession's, where a load must not suspend its task;
      // Dispatch has a thread or waits for one.
      DispatchQueue.global().async { [self] in work() }
    }
  }

  private func work() {
    while let job = nextJob() { job() }
  }

  private func nextJob() -> (@Sendable () -> Void)? {
    state.withLock { state in
      let job = state.jobs.dequeue()
      if job == nil { state.threads -= 1 }
      return job
    }
  }
}
