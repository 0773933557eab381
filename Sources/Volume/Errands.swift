import Posix

/// A thread that does what a request's thread must not, because it may wait for other requests to be answered.
final class Errands: Sendable {
  typealias Errand = @Sendable () -> Void
  private struct State {
    var waiting: [Errand] = []
    /// Before the start and after the end nobody would come.
    var isOpen = false
  }

  private let state = Locked(State())
  private let wakeUp: WakeUp
  private let thread = Locked<ThreadHandle?>(nil)

  private let name: String

  /// - Parameter name: the thread's.
  init(name: String) throws(Errno) {
    self.name = name
    wakeUp = try WakeUp()
  }

  /// Starts the thread.
  func start() throws(Errno) {
    state.withLock { $0.isOpen = true }
    let handle = ThreadHandle(try Thread(name: name) { self.run() })
    thread.withLock { $0 = handle }
  }

  /// Has something done, after what waits already.
  /// - Returns: false when it will not be, since the mount ends.
  func add(_ errand: @escaping Errand) -> Bool {
    let isTaken = state.withLock { state in
      if state.isOpen { state.waiting.append(errand) }
      return state.isOpen
    }
    wakeUp.wake()
    return isTaken
  }

  /// Ends the thread, after what waits is done. Requests must still be answered meanwhile.
  func stop() {
    state.withLock { $0.isOpen = false }
    wakeUp.wake()
    thread.withLock { $0 }?.join()
  }

  private func run() {
    while true {
      let (errands, isOpen) = state.withLock { state in
        defer { state.waiting = [] }
        return (state.waiting, state.isOpen)
      }
      for errand in errands { errand() }
      if !errands.isEmpty { continue }
      if !isOpen { return }
      wakeUp.wait(or: -1, milliseconds: -1)
    }
  }
}
