import Posix

/// A thread that does what a request's thread must not, because it may wait for other requests to be answered.
final class SerialWorker: Sendable {
  typealias Errand = @Sendable () -> Void

  private let line = BlockingQueue<Errand>()
  /// Before the start nobody would come.
  private let isStarted = Locked(false)
  private let thread = Locked<ThreadHandle?>(nil)

  private let name: String

  /// - Parameter name: the thread's.
  init(name: String) { self.name = name }

  /// Starts the thread.
  func start() throws(Errno) {
    isStarted.withLock { $0 = true }
    let handle = ThreadHandle(
      try Thread(name: name) { [line] in
        while let errand = line.dequeue() { errand() }
      })
    thread.withLock { $0 = handle }
  }

  /// Has something done, after what waits already.
  /// - Returns: false when it will not be, since the mount ends.
  func add(_ errand: @escaping Errand) -> Bool {
    isStarted.withLock { $0 } && line.enqueue(errand)
  }

  /// Ends the thread, after what waits is done. Requests must still be answered meanwhile.
  func stop() {
    line.close()
    thread.withLock { $0 }?.join()
  }
}
