import Posix

/// A serial worker for jobs that may themselves block on FUSE requests to our own mount. Jobs must not wait for an
/// isolated layer: see `LayerStack.runDeferred`.
final class SerialWorker: Sendable {
  typealias Job = @Sendable () -> Void

  private let queue = BlockingQueue<Job>()
  private let isStarted = Locked(false)
  private let thread = Locked<ThreadHandle?>(nil)
  private let name: String

  init(name: String) { self.name = name }

  /// - Throws: EAGAIN.
  func start() throws(Errno) {
    isStarted.withLock { $0 = true }
    let handle = ThreadHandle(
      try Thread(name: name) { [queue] in
        LayerAccess.current = .shared
        while let job = queue.dequeue() {
          LayerAccess.clearDeferral()
          job()
        }
      })
    thread.withLock { $0 = handle }
  }

  /// - Returns: false if the thread has not been started or is ending; the job is then not run.
  func add(_ job: @escaping Job) -> Bool {
    isStarted.withLock { $0 } && queue.enqueue(job)
  }

  /// Ends the thread after the jobs in the queue. Requests must still be answered meanwhile.
  func stop() {
    queue.close()
    thread.withLock { $0 }?.join()
  }
}
