import Foundation
import Posix

extension LoaderPool {
  /// Runs a job that may block on a thread of the pool.
  /// - Returns: its result, or `URLError.cancelled` as soon as the task is cancelled; the job then ends by itself.
  func result<Success: Sendable>(
    of job: @escaping @Sendable () -> Result<Success, URLError>
  ) async -> Result<Success, URLError> {
    let pending = PendingResult<Success>()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if pending.isAwaited(by: continuation) { run { pending.end(job()) } }
      }
    } onCancel: {
      pending.end(.failure(URLError(.cancelled)))
    }
  }
}

/// A result that one task awaits. The first one counts.
private final class PendingResult<Success: Sendable>: Sendable {
  typealias Outcome = Result<Success, URLError>

  private enum State {
    case idle
    case awaited(CheckedContinuation<Outcome, Never>)
    case ended
  }
  private let state = Locked(State.idle)

  /// - Returns: false if it has ended before; the continuation is resumed with a cancellation then.
  func isAwaited(by continuation: CheckedContinuation<Outcome, Never>) -> Bool {
    let isOpen = state.withLock { state in
      guard case .idle = state else { return false }
      state = .awaited(continuation)
      return true
    }
    if !isOpen { continuation.resume(returning: .failure(URLError(.cancelled))) }
    return isOpen
  }

  func end(_ outcome: Outcome) {
    let former = state.withLock { state in
      defer { state = .ended }
      return state
    }
    if case .awaited(let continuation) = former { continuation.resume(returning: outcome) }
  }
}
