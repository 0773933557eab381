import CFuse
import Glibc
import Posix

/// Waits for what ends a session: a signal, or the end of the connection.
final class SessionEnd: Sendable {
  enum Reason {
    /// SIGINT or SIGTERM.
    case signal
    /// A worker has read ENODEV: the file system is unmounted.
    case workersEnded
    /// A successor is to go on.
    case handover
    /// It is unmounted, at least lazily, and no worker can notice since all of them wait for layers.
    case workersBlocked
  }

  /// The interval in milliseconds at which a session is checked that is not in the mount table any more.
  private static let interval: CInt = 500
  /// The same for a mount that is elsewhere, whose mount table this process does not see.
  private static let intervalElsewhere: CInt = 5000
  /// The number of checks in a row that find the workers blocked.
  private static let patience = 4

  /// Milliseconds.
  private static let debounce: CInt = 250

  private let firstRequest = Locked<TimeSpec?>(nil)
  private let signals: SignalDescriptor
  private let workersEnded: EventFD
  private let handover: EventFD
  private let mounts: MountTableWatch

  /// - Parameter signals: blocked in all threads.
  /// - Throws: EMFILE, ENFILE, ENOMEM.
  init(signals: SignalSet) throws(Errno) {
    self.signals = try SignalDescriptor(signals)
    workersEnded = try EventFD()
    handover = try EventFD()
    mounts = try MountTableWatch()
  }

  func workerDidEnd() { workersEnded.signal() }

  func handOver() { handover.signal() }

  /// Waits until the session has to end.
  func wait(_ session: Session, _ pool: WorkerPool, onHangup: () -> Void) -> Reason {
    var isMounted = true
    var blocked = (checks: 0, progress: UInt64(0))
    while true {
      var polled = [
        pollfd(fd: signals.rawValue, events: Int16(POLLIN), revents: 0),
        pollfd(fd: workersEnded.rawValue, events: Int16(POLLIN), revents: 0),
        pollfd(fd: mounts.rawValue, events: Int16(POLLPRI), revents: 0),
        pollfd(fd: handover.rawValue, events: Int16(POLLIN), revents: 0),
      ]
      let interval = session.isElsewhere ? Self.intervalElsewhere : isMounted ? -1 : Self.interval
      poll(&polled, 4, interval)
      if polled[1].revents != 0 { return .workersEnded }
      if polled[3].revents != 0 { return .handover }
      if isEndRequested(onHangup) { return .signal }
      if session.isElsewhere {
        if pool.blockedSince != nil, session.isDisconnected { return .workersBlocked }
        continue
      }
      if polled[2].revents != 0 { isMounted = session.isInMountTable }
      if isMounted { continue }
      let progress = pool.blockedSince
      blocked =
        progress != nil && progress == blocked.progress
        ? (blocked.checks + 1, blocked.progress) : (0, progress ?? 0)
      if progress != nil, session.isDisconnected || blocked.checks >= Self.patience { return .workersBlocked }
    }
  }

  /// Waits until the threads have ended.
  /// - Returns: false after the timeout, or at another SIGINT or SIGTERM.
  func wait(for finished: borrowing EventFD, milliseconds: CInt) -> Bool {
    let deadline = TimeSpec.monotonic.advanced(byMilliseconds: milliseconds)
    while true {
      var polled = [
        pollfd(fd: finished.rawValue, events: Int16(POLLIN), revents: 0),
        pollfd(fd: signals.rawValue, events: Int16(POLLIN), revents: 0),
      ]
      let ready = poll(&polled, 2, deadline.milliseconds(since: .monotonic))
      if polled[0].revents != 0 { return true }
      if ready == 0 || isEndRequested({}) { return false }
    }
  }

  /// A signal soon after the first one is the same request: a service manager signals all processes of a service, and
  /// one of these may pass it on.
  private func isEndRequested(_ onHangup: () -> Void) -> Bool {
    var isRequested = false
    while let signal = signals.next() {
      if signal == SIGHUP { onHangup() } else { isRequested = true }
    }
    if !isRequested { return false }
    return firstRequest.withLock { first in
      guard let begin = first else {
        first = .monotonic
        return true
      }
      return TimeSpec.monotonic.milliseconds(since: begin) > Self.debounce
    }
  }
}

extension Session {
  /// Whether this session's mount is in the mount table, at any path.
  var isInMountTable: Bool {
    MountTableEntry.all().contains { $0.id == entry?.id && $0.device == mountPoint.device }
  }

  /// Whether the kernel has closed the connection. Polling it continuously would wake the poller at each request.
  fileprivate var isDisconnected: Bool {
    var polled = pollfd(fd: fuse_session_fd(pointer), events: 0, revents: 0)
    return poll(&polled, 1, 0) > 0 && polled.revents & Int16(POLLERR) != 0
  }
}
