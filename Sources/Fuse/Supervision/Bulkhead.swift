import Posix

/// The threads that process the requests of one isolated layer. If it does not answer, they wait, and no others.
final class Bulkhead: Sendable {
  /// The most threads.
  static let limit = 8

  private struct State {
    var threads = 0
    /// The requests that wait for a thread or are being processed.
    var requests = 0
  }

  private let layer: Int
  private let supervisor: RequestSupervisor
  private let wakeUps = BlockingQueue<Void>()
  private let state = Locked(State())

  init(layer: Int, _ supervisor: RequestSupervisor) {
    self.layer = layer
    self.supervisor = supervisor
  }

  /// Has a thread take the layer's next request.
  /// - Throws: EAGAIN if there is no thread and none can be started.
  func wake() throws(Errno) {
    let starts = state.withLock { state in
      state.requests += 1
      let starts = state.threads < min(state.requests, Self.limit)
      if starts { state.threads += 1 }
      return starts
    }
    wakeUps.enqueue(())
    if !starts { return }
    do throws(Errno) {
      try Thread.startDetached(name: "layer \(layer)") { [self] in run() }
    } catch {
      let hasThreads = state.withLock { state in
        state.threads -= 1
        return state.threads > 0
      }
      if !hasThreads { throw error }
    }
  }

  private func run() {
    LayerAccess.current = .waiting
    RequestThread.repeatRequests()
    while wakeUps.dequeue() != nil {
      supervisor.processNext(of: layer)
      state.withLock { $0.requests -= 1 }
    }
    state.withLock { $0.threads -= 1 }
  }

  /// Ends the threads that wait for no layer.
  func close() { wakeUps.close() }

  /// Whether there are threads left.
  var hasThreads: Bool { state.withLock { $0.threads > 0 } }
}
