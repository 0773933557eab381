import Posix

/// A serial worker for jobs that may themselves block on FUSE requests to our own mount. Jobs must not wait for an
/// isolated layer: see `LayerStack.runDeferred`.
final class SerialWorker: Sendable {
  typealias Job = @Sendable () -> Void

  private let queue = BlockingQueue<Job>()
  private let name: String
  private let loop = Locked<FailoverLoop<Job>?>(nil)

  init(name: String) { self.name = name }

  /// - Parameter repeats: whether a job that waits for a layer that does not answer is run again, on another thread and
  ///   without waiting for that layer.
  /// - Throws: EAGAIN.
  func start(_ watchdog: LayerWatchdog, repeats: Bool = false) throws(Errno) {
    let loop = FailoverLoop(
      name: name, repeats: repeats, watchdog,
      take: { [queue] in queue.dequeue().map { [$0] } },
      handle: { (job: Job) in
        LayerAccess.clearDeferral()
        job()
      })
    try loop.start()
    self.loop.withLock { $0 = loop }
  }

  /// - Returns: false if the thread has not been started or is ending; the job is then not run.
  func add(_ job: @escaping Job) -> Bool {
    loop.withLock { $0 != nil } && queue.enqueue(job)
  }

  /// Ends the thread after the jobs in the queue. Requests must still be answered meanwhile.
  func stop() {
    queue.close()
    loop.withLock { $0 }?.join()
  }
}
