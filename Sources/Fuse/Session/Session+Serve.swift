import CFuse
import Glibc
import Posix

/// What `Session.serve` calls back.
public struct SessionEvents {
  /// Called before the first request is read; may start threads.
  public var willStart: () throws(Errno) -> Void
  /// Called once requests are processed.
  public var didStart: () -> Void = {}
  /// Called at SIGHUP.
  public var hangup: () -> Void = {}
  /// Called on a thread of its own while requests are still processed, so it may wait for some.
  public var willStop: @Sendable () -> Void
  /// Called before the process exits without its threads, on the thread that serves.
  public var willAbandon: () -> Void = {}
  /// Called with a message about an end that was not clean.
  public var report: @Sendable (String) -> Void = { _ in }

  /// Events without optional callbacks.
  public init(willStart: @escaping () throws(Errno) -> Void, willStop: @escaping @Sendable () -> Void) {
    self.willStart = willStart
    self.willStop = willStop
  }
}

/// How the processing of requests has ended.
public enum ServingEnd: Sendable {
  case unmounted
  /// A successor is to go on, and all that was to be done before is done.
  case handedOver
  /// A successor is to go on, while threads may still be at work.
  case handedOverEarly
}

extension Session {
  /// The signals that `serve` waits for.
  private static let signals = SignalSet([SIGINT, SIGTERM, SIGHUP])
  /// Makes SIGINT, SIGTERM and SIGHUP pending until `serve`, so that they leave no mount behind, and ignores other
  /// signals that would end the process.
  public static func holdSignals() {
    signals.block()
    SignalSet.ignoreStray()
  }

  /// Undoes the blocking of `holdSignals`, in a process that serves nothing.
  public static func releaseSignals() { signals.unblock() }

  /// Processes requests until the mount is unmounted or SIGINT or SIGTERM arrives, and then unmounts. If the threads do
  /// not end within 4 s, since a layer does not answer, or at a second signal, the connection and the process are ended
  /// without them.
  /// - Parameters:
  ///   - count: the number of worker threads.
  ///   - readLocks: held while a thread reads a request, so that a successor can wait for its end; nil without successor.
  ///   - lowLatency: whether to keep idle processors awake during bursts of requests.
  /// - Throws: if a thread cannot be started; the mount is unmounted then, too, unless the session is resumed.
  /// - Returns: whether a successor is to go on: then the connection is left as it is.
  public func serve(
    workers count: Int, readLocks: RobustLocks?, lowLatency: Bool, _ events: SessionEvents
  ) throws(MountError) -> ServingEnd {
    Self.holdSignals()
    do throws(Errno) {
      try Interrupt.installHandler()
      let end = try SessionEnd(signals: Self.signals)
      self.end.withLock { $0 = end }
      defer { self.end.withLock { $0 = nil } }
      try events.willStart()
      let pool = try WorkerPool(session: self, count: count, readLocks: readLocks, lowLatency: lowLatency) {
        end.workerDidEnd()
      }
      let shutdown = try Shutdown(self, pool, events)
      events.didStart()
      let reason = end.wait(self, pool, onHangup: events.hangup)
      if reason == .workersEnded { reportAbort(events.report) }
      shutdown.begin(unmounts: reason != .handover)
      if end.wait(for: shutdown.finished, milliseconds: Self.shutdownTimeout(reason)) {
        shutdown.join()
        return reason == .handover ? .handedOver : .unmounted
      }
      if reason == .handover { return .handedOverEarly }
      abandon(events)
    } catch {
      if !isResumed { unmount() }
      throw MountError(message: "cannot start the threads: \(error)")
    }
  }

  /// How long the threads may take to end, in milliseconds.
  private static func shutdownTimeout(_ reason: SessionEnd.Reason) -> CInt {
    switch reason {
    case .signal, .workersEnded: 4000
    // The worst case is known, and `bundlefs unmount` has waited.
    case .workersBlocked: 500
    // What is not answered by then, the successor answers.
    case .handover: 30
    }
  }

  /// Unmounts, closes the connection, and exits without waiting for the threads.
  private func abandon(_ events: SessionEvents) -> Never {
    events.willAbandon()
    // Unmounting can block, too, if the path leads through a file system that does not answer.
    if let unmounted = try? SharedEventFD(EventFD()) {
      let thread: Void? = try? Thread.startDetached(name: "unmount") { [self, report = events.report] in
        self.report(unmount(), report)
        unmounted.eventFD.signal()
      }
      if thread != nil { unmounted.eventFD.wait(or: -1, milliseconds: 500) }
    }
    closeConnection()
    events.report("ended without waiting for requests to layers that do not answer")
    _exit(0)
  }

  /// Says so if the connection has ended while the mount is still there. The kernel asks no file system before.
  private func reportAbort(_ report: (String) -> Void) {
    guard !isElsewhere, isInMountTable else { return }
    report(
      "\(String(decoding: mountPoint.path, as: UTF8.self)): unmounted: the connection was aborted, "
        + "by 'umount -f' of the mount or of a bind mount of a part of it, or through /sys/fs/fuse/connections"
    )
  }

  fileprivate func report(_ failure: String?, _ report: (String) -> Void) {
    guard let failure else { return }
    report("\(String(decoding: mountPoint.path, as: UTF8.self)): not unmounted: \(failure)")
  }
}

/// An event that closures share.
private final class SharedEventFD: Sendable {
  let eventFD: EventFD
  init(_ eventFD: consuming EventFD) { self.eventFD = eventFD }
}

/// Ends a session on a thread of its own, which a layer that does not answer may block. The thread exists from the start,
/// since none may be available at the end.
private final class Shutdown: Sendable {
  private let begun: EventFD
  let finished: EventFD
  private let thread = Locked<ThreadHandle?>(nil)
  /// Whether to unmount; nil until it begins.
  private let unmounts = Locked<Bool?>(nil)

  init(_ session: Session, _ pool: WorkerPool, _ events: SessionEvents) throws(Errno) {
    begun = try EventFD()
    finished = try EventFD()
    let (willStop, report) = (events.willStop, events.report)
    let handle = ThreadHandle(
      try Thread(name: "shutdown") { [self] in
        // A signal handler that runs in this thread ends the wait, too.
        while unmounts.withLock({ $0 == nil }) { begun.wait(or: -1, milliseconds: -1) }
        if unmounts.withLock({ $0 }) == false { session.dispatcher.pendingReplies.beginHandover() }
        willStop()
        fuse_session_exit(session.pointer)
        // What is left behind may still use the session.
        if !pool.join() { _ = Unmanaged.passRetained(session) }
        if unmounts.withLock({ $0 }) == true { session.report(session.unmount(), report) }
        finished.signal()
      })
    thread.withLock { $0 = handle }
  }

  func begin(unmounts: Bool) {
    self.unmounts.withLock { $0 = unmounts }
    begun.signal()
  }

  /// Waits for the thread, which holds the file system, to end; to be called once `finished` is signalled.
  func join() { thread.withLock { $0 }?.join() }
}
