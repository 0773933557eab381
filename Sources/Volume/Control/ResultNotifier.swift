import Glibc
import Posix

/// Delays poll wake-ups by 10 ms so that the writer has its reply first; until then the kernel ignores the new
/// file size, and a reader would see the old content and wait for the next result.
final class ResultNotifier: Sendable {
  private struct State {
    /// The last result whose write was replied to.
    var replied: UInt64 = 0
    var notified: UInt64 = 0
    var isScheduled = false
  }

  /// Longer than a runnable writer is kept off its processor, shorter than a user perceives.
  private static let delayMicroseconds: UInt32 = 10_000

  private let state = Locked(State())
  private let worker = SerialWorker(name: "notifier")
  private let notify: @Sendable () -> Void

  init(_ notify: @escaping @Sendable () -> Void) { self.notify = notify }

  /// The last result that may be reported to subscribers.
  var latest: UInt64 { state.withLock { $0.notified } }

  /// Starts the worker thread; before that, notifications are synchronous and undelayed.
  func start(_ watchdog: LayerWatchdog) throws(Errno) { try worker.start(watchdog) }

  func stop() { worker.stop() }

  /// Schedules a notification: the writes of all results up to this one have been replied to.
  func repliesSent(upTo latest: UInt64) {
    let isScheduled = state.withLock { state in
      defer { state.isScheduled = state.isScheduled || state.replied > state.notified }
      state.replied = max(state.replied, latest)
      return state.isScheduled || state.replied == state.notified
    }
    if isScheduled || worker.add({ [self] in while notifyNext(after: Self.delayMicroseconds) {} }) { return }
    while notifyNext(after: 0) {}
  }

  /// Notifies subscribers of the results replied to before the delay.
  /// - Returns: whether more results were replied to meanwhile.
  private func notifyNext(after microseconds: UInt32) -> Bool {
    let latest = state.withLock { $0.replied }
    if microseconds > 0 { usleep(microseconds) }
    state.withLock { $0.notified = latest }
    notify()
    return state.withLock { state in
      state.isScheduled = state.replied > state.notified
      return state.isScheduled
    }
  }
}
