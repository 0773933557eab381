import Glibc
import Posix

/// Who waits for results is told of each a moment after its write was answered. Until the writer has taken the
/// answer, the kernel passes over what it learns of the file's size, and who reads at once would read what was
/// there before, and wait for the next result.
final class ResultNotifier: Sendable {
  private struct State {
    /// The last result whose write is answered.
    var answered: UInt64 = 0
    /// The last that is told of.
    var told: UInt64 = 0
    /// Whether somebody is about to tell.
    var isBusy = false
  }

  /// Longer than a writer that is ready to run is ever kept waiting, and shorter than anyone notices.
  private static let microseconds: UInt32 = 10_000

  private let state = Locked(State())
  private let errands: SerialWorker
  private let tell: @Sendable () -> Void

  /// - Parameter tell: tells those who wait.
  init(_ tell: @escaping @Sendable () -> Void) throws(Errno) {
    errands = SerialWorker(name: "news")
    self.tell = tell
  }

  /// The last result of which may be told.
  var latest: UInt64 { state.withLock { $0.told } }

  /// Starts its thread; before that, everything is told at once.
  func start() throws(Errno) { try errands.start() }

  /// Ends its thread, when all has been told.
  func stop() { errands.stop() }

  /// Notes that the writes of all results up to this one are answered.
  func repliesSent(upTo latest: UInt64) {
    let isBusy = state.withLock { state in
      defer { state.isBusy = state.isBusy || state.answered > state.told }
      state.answered = max(state.answered, latest)
      return state.isBusy || state.answered == state.told
    }
    if isBusy || errands.add({ [self] in while tellNext(after: Self.microseconds) {} }) { return }
    while tellNext(after: 0) {}
  }

  /// Tells of what there is now.
  /// - Returns: whether there is more meanwhile.
  private func tellNext(after pause: UInt32) -> Bool {
    let latest = state.withLock { $0.answered }
    if pause > 0 { usleep(pause) }
    state.withLock { $0.told = latest }
    tell()
    return state.withLock { state in
      state.isBusy = state.answered > state.told
      return state.isBusy
    }
  }
}
