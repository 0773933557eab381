import CFuse
import Glibc
import Posix

/// The threads that answer requests; `LeaderFollowers` tells which of them wait for the next one.
final class WorkerPool: Sendable {
  /// What a parked one waits for.
  private final class Call: Sendable {
    let eventFD: EventFD
    init() throws(Errno) { eventFD = try EventFD() }
  }

  private let session: Session
  private let calls: [Call]
  private let members = Locked<[ThreadHandle]>([])
  private let roster = Locked(LeaderFollowers())
  private let running = Locked(0)
  private let rush: Rush?

  /// Starts them.
  /// - Parameter onEnd: called by each thread when it has ended by itself.
  /// - Throws: EAGAIN, EMFILE when the system has no room for them.
  init(session: Session, count: Int, onEnd: @escaping @Sendable () -> Void) throws(Errno) {
    self.session = session
    rush = processorCount > 1 ? try Rush(CPULatencyRequest()) : nil
    var calls: [Call] = []
    for _ in 0..<max(count, 1) { calls.append(try Call()) }
    self.calls = calls
    for number in calls.indices {
      running.withLock { $0 += 1 }
      let thread = try Posix.Thread(name: "request \(number + 1)") { [self] in
        work(number)
        running.withLock { $0 -= 1 }
        onEnd()
      }
      let member = ThreadHandle(thread)
      members.withLock { $0.append(member) }
    }
  }

  /// Waits for all threads; those that wait are woken. A wake-up can come just before a thread begins to wait,
  /// so it is repeated.
  func end() {
    let members = members.withLock { $0 }
    while running.withLock({ $0 }) > 0 {
      for member in members { member.interrupt() }
      usleep(1000)
    }
    for member in members { member.join() }
    rush?.end()
  }

  /// One thread's work, to the session's end.
  private func work(_ number: Int) {
    var buffer = fuse_buf()
    defer { free(buffer.mem) }
    var isOnDuty = roster.withLock { $0.join(number) }
    var spin = AdaptiveSpin(processors: processorCount)
    while isOnDuty || waitForCall(number) {
      runIdleWorkWhileQuiet()
      // Whoever sleeps is woken as quickly then.
      let isRushing = rush?.isOn ?? false
      if !isRushing { spin.wait { session.hasRequest } }
      guard let isRequest = session.receive(into: &buffer) else { break }
      isOnDuty = true
      if !isRushing { received(&spin) }
      rush?.noteRequest()
      if isRequest { isOnDuty = answer(&buffer, number) }
    }
  }

  private func received(_ spin: inout AdaptiveSpin) {
    spin.received()
    if let rush, spin.streak >= Rush.worth {
      spin.streak = 0
      rush.begin()
    }
  }

  /// Has the file system do what is likely to be asked for next, as long as there is no request.
  private func runIdleWorkWhileQuiet() {
    while session.dispatcher.fileSystem.runIdleWork(beginIdleWork) {
      roster.withLock { $0.endIdleWork() }
    }
  }

  private func beginIdleWork() -> Bool {
    !session.hasRequest && roster.withLock { $0.beginIdleWork() }
  }

  /// Answers a request.
  /// - Returns: whether the thread is to wait for the next one.
  private func answer(_ buffer: inout fuse_buf, _ number: Int) -> Bool {
    let hasMore = session.hasRequest
    let woken = roster.withLock { $0.receive(hasMore: hasMore) }
    if let called = woken.called { calls[called].eventFD.signal() }
    if let lookout = woken.lookout, lookout != woken.called { calls[lookout].eventFD.signal() }
    fuse_session_process_buf(session.pointer, &buffer)
    return roster.withLock { $0.finish(number) { session.hasRequest } }
  }

  /// Waits until there is something to do.
  /// - Returns: false when the session has ended.
  private func waitForCall(_ number: Int) -> Bool {
    while fuse_session_exited(session.pointer) == 0 {
      let time = roster.withLock { $0.sleep(of: number) }
      calls[number].eventFD.wait(or: -1, milliseconds: time)
      let (isOnDuty, lookout, isQuiet) = roster.withLock { roster in
        let slept = roster.lookoutSleeps
        return (roster.wake(number), roster.lookout, roster.lookoutSleeps && !slept)
      }
      if isQuiet { session.dispatcher.fileSystem.didBecomeIdle() }
      if isOnDuty {
        // Whoever looks out in its place may sleep too long.
        if let lookout { calls[lookout].eventFD.signal() }
        return true
      }
    }
    return false
  }
}
