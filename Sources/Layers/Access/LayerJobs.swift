import Containers
import Posix

/// The jobs that may wait for one layer, run in order by a thread that exists while there are any.
final class LayerJobs: Sendable {
  typealias Job = @Sendable () -> Void

  private struct State {
    var queue = Queue<Job>()
    var isRunning = false
  }

  private let state = Locked(State())

  /// Adds a job. If no thread can be started, the next job that is added starts one.
  func add(_ job: @escaping Job) {
    let starts = state.withLock { state in
      state.queue.enqueue(job)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if !starts { return }
    do throws(Errno) {
      try Thread.startDetached(name: "layer-jobs") { [self] in run() }
    } catch {
      state.withLock { $0.isRunning = false }
    }
  }

  private func run() {
    while let job = next() { job() }
  }

  private func next() -> Job? {
    state.withLock { state in
      let job = state.queue.dequeue()
      if job == nil { state.isRunning = false }
      return job
    }
  }
}
