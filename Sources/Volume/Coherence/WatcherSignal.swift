import Posix

/// Wakes the watcher thread.
final class WatcherSignal: Sendable {
  let eventFD: EventFD

  /// - Throws: as `EventFD.init`.
  init() throws(Errno) { eventFD = try EventFD() }

  func send() { eventFD.signal() }
}
