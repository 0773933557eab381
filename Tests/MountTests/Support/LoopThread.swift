import Posix
import TestSupport

/// A thread that repeats its body until it is stopped, and reports its progress.
final class LoopThread: Sendable {
  private struct State {
    var iterations = 0
    var lastProgress = Clock.now
    var isFinished = false
    var failure: String?
  }

  let name: String
  private let state = Locked(State())
  private let isStopping: Locked<Bool>

  /// - Parameter body: one iteration; a long one calls `recordProgress()` in between.
  init(
    _ name: String, until isStopping: Locked<Bool>, _ body: @escaping @Sendable (LoopThread) throws -> Void
  ) throws {
    self.name = name
    self.isStopping = isStopping
    _ = try Thread(name: name) { [self] in
      while !isStopping.withLock({ $0 }) {
        do {
          try body(self)
        } catch {
          state.withLock { $0.failure = "\(error)" }
          break
        }
        recordProgress()
      }
      state.withLock { $0.isFinished = true }
    }
  }

  func recordProgress() {
    state.withLock {
      $0.iterations += 1
      $0.lastProgress = Clock.now
    }
  }

  /// Seconds since the last recorded progress; 0 once finished.
  var stalledTime: Double { state.withLock { $0.isFinished ? 0 : Clock.now - $0.lastProgress } }
  var iterations: Int { state.withLock { $0.iterations } }
  var isFinished: Bool { state.withLock { $0.isFinished } }
  /// The error that the body threw, which ended the loop.
  var failure: String? { state.withLock { $0.failure } }
}

extension LoopThread {
  /// Waits until `end`, until a thread has finished, or until one makes no progress for `limit` seconds.
  /// - Returns: the threads without progress.
  static func waitForStall(of threads: [LoopThread], until end: Double, limit: Double) -> [LoopThread] {
    var stalled: [LoopThread] = []
    while Clock.now < end && stalled.isEmpty && threads.allSatisfy({ !$0.isFinished }) {
      Clock.sleep(0.1)
      stalled = threads.filter { $0.stalledTime > limit }
    }
    return stalled
  }
}
