import CFuse
import Glibc
import Posix

/// The threads that read and process requests; `LeaderFollowers` decides which of them reads the next one.
final class WorkerPool: Sendable {
  /// Wakes one follower.
  private final class WakeUp: Sendable {
    let eventFD: EventFD
    init() throws(Errno) { eventFD = try EventFD() }
  }

  private let session: Session
  private let wakeUps: [WakeUp]
  private let threads = Locked<[ThreadHandle]>([])
  private let roles = Locked(LeaderFollowers())
  private let running = Locked(0)
  private let lowLatency: LowLatencyMode?

  /// Starts the threads.
  /// - Parameters:
  ///   - lowLatency: whether to keep idle processors awake during bursts of requests.
  ///   - onExit: called by each thread at its end.
  /// - Throws: EAGAIN, EMFILE.
  init(
    session: Session, count: Int, lowLatency: Bool, onExit: @escaping @Sendable () -> Void
  ) throws(Errno) {
    self.session = session
    self.lowLatency = lowLatency && processorCount > 1 ? try LowLatencyMode(CPULatencyRequest()) : nil
    var wakeUps: [WakeUp] = []
    for _ in 0..<max(count, 1) { wakeUps.append(try WakeUp()) }
    self.wakeUps = wakeUps
    for worker in wakeUps.indices {
      running.withLock { $0 += 1 }
      let thread = try Posix.Thread(name: "request \(worker + 1)") { [self] in
        run(worker)
        running.withLock { $0 -= 1 }
        onExit()
      }
      let handle = ThreadHandle(thread)
      threads.withLock { $0.append(handle) }
    }
  }

  /// Waits until all threads have ended. Interrupts blocked ones repeatedly, since a signal may arrive just before
  /// a thread blocks.
  func join() {
    let threads = threads.withLock { $0 }
    while running.withLock({ $0 }) > 0 {
      for thread in threads { thread.interrupt() }
      usleep(1000)
    }
    for thread in threads { thread.join() }
    lowLatency?.stop()
  }

  private func run(_ worker: Int) {
    var buffer = fuse_buf()
    defer { free(buffer.mem) }
    var isLeader = roles.withLock { $0.join(worker) }
    var spin = AdaptiveSpin(processors: processorCount)
    while isLeader || waitForPromotion(worker) {
      runIdleWork()
      // While processors are awake, a wake-up is as fast as a spin.
      let isLowLatency = lowLatency?.isActive ?? false
      if !isLowLatency { spin.wait { session.hasRequest } }
      guard let isRequest = session.receive(into: &buffer) else { break }
      isLeader = true
      if !isLowLatency { received(&spin) }
      lowLatency?.countRequest()
      if isRequest { isLeader = process(&buffer, worker) }
    }
  }

  private func received(_ spin: inout AdaptiveSpin) {
    spin.received()
    if let lowLatency, spin.streak >= LowLatencyMode.burstLength {
      spin.streak = 0
      lowLatency.activate()
    }
  }

  /// Runs the file system's idle work while no request is pending.
  private func runIdleWork() {
    while session.dispatcher.fileSystem.runIdleWork(beginIdleWork) {
      roles.withLock { $0.endIdleWork() }
    }
  }

  private func beginIdleWork() -> Bool {
    !session.hasRequest && roles.withLock { $0.beginIdleWork() }
  }

  /// Processes a request.
  /// - Returns: whether the worker is a leader afterwards.
  private func process(_ buffer: inout fuse_buf, _ worker: Int) -> Bool {
    let hasMore = session.hasRequest
    let woken = roles.withLock { $0.receive(hasMore: hasMore) }
    if let promoted = woken.promoted { wakeUps[promoted].eventFD.signal() }
    if let watchdog = woken.watchdog, watchdog != woken.promoted { wakeUps[watchdog].eventFD.signal() }
    fuse_session_process_buf(session.pointer, &buffer)
    return roles.withLock { $0.finish(worker) { session.hasRequest } }
  }

  /// Sleeps until the worker is a leader.
  /// - Returns: false when the session has ended.
  private func waitForPromotion(_ worker: Int) -> Bool {
    while fuse_session_exited(session.pointer) == 0 {
      let timeout = roles.withLock { $0.timeout(of: worker) }
      wakeUps[worker].eventFD.wait(or: -1, milliseconds: timeout)
      let (isLeader, watchdog, isIdle) = roles.withLock { roles in
        let wasAsleep = roles.isWatchdogAsleep
        return (roles.wake(worker), roles.watchdog, roles.isWatchdogAsleep && !wasAsleep)
      }
      if isIdle { session.dispatcher.fileSystem.didBecomeIdle() }
      if isLeader {
        // The new watchdog may be in a wait without timeout.
        if let watchdog { wakeUps[watchdog].eventFD.signal() }
        return true
      }
    }
    return false
  }
}
