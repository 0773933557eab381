import Posix
import TestSupport

/// A thread that does one thing over and over, and shows that it still does.
final class Worker: Sendable {
  private struct State {
    var beats = 0
    var lastBeat = Clock.now
    var isOver = false
    var problem: String?
  }

  let name: String
  private let state = Locked(State())
  private let isStopping: Locked<Bool>

  /// - Parameter body: one round; it gets the worker, to show in between that it lives.
  init(_ name: String, until isStopping: Locked<Bool>, _ body: @escaping @Sendable (Worker) throws -> Void)
    throws
  {
    self.name = name
    self.isStopping = isStopping
    _ = try Thread(name: name) { [self] in
      while !isStopping.withLock({ $0 }) {
        do {
          try body(self)
        } catch {
          state.withLock { $0.problem = "\(error)" }
          break
        }
        beat()
      }
      state.withLock { $0.isOver = true }
    }
  }

  /// It still lives.
  func beat() {
    state.withLock {
      $0.beats += 1
      $0.lastBeat = Clock.now
    }
  }

  /// How long it has shown nothing, in seconds.
  var silence: Double { state.withLock { $0.isOver ? 0 : Clock.now - $0.lastBeat } }
  var beats: Int { state.withLock { $0.beats } }
  var isOver: Bool { state.withLock { $0.isOver } }
  /// Why it ended by itself.
  var problem: String? { state.withLock { $0.problem } }
}
