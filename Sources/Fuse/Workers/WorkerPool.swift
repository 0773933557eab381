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

  /// The most workers, with those that are added while others wait for a layer.
  private static let limit = RobustLocks.count

  private let session: Session
  /// How many workers there are while none waits for a layer.
  private let count: Int
  private let wakeUps = Locked<[WakeUp]>([])
  private let threads = Locked<[Int: ThreadHandle]>([:])
  private let roles = Locked(LeaderFollowers())
  /// The workers whose threads run.
  private let running = Locked<Set<Int>>([])
  private let readLocks: RobustLocks?
  private let lowLatency: LowLatencyMode?
  private let sharing: ProcessorSharing?
  private let onExit: @Sendable () -> Void
  private let commandFile: NodeID?
  private let supervised = SupervisedWorkers()
  private let supervisor: RequestSupervisor

  /// Starts the threads.
  /// - Parameters:
  ///   - readLocks: held while a thread reads a request; nil if no successor is to come.
  ///   - lowLatency: whether to keep idle processors awake during bursts of requests.
  ///   - onExit: called by each thread at its end.
  /// - Throws: EAGAIN, EMFILE.
  init(
    session: Session, count: Int, readLocks: RobustLocks?, lowLatency: Bool,
    onExit: @escaping @Sendable () -> Void
  ) throws(Errno) {
    self.session = session
    self.count = min(max(count, 1), Self.limit)
    self.readLocks = readLocks
    self.onExit = onExit
    commandFile = session.dispatcher.fileSystem.settings.commandFile
    self.lowLatency = lowLatency && processorCount > 1 ? try LowLatencyMode(CPULatencyRequest()) : nil
    sharing = self.lowLatency == nil ? try ProcessorSharing() : nil
    supervisor = try RequestSupervisor(session, supervised)
    supervised.configure { [self] in addWorkerIfAllAreBusy() }
    for _ in 0..<self.count { try addWorker() }
    try supervisor.start()
  }

  /// The number of requests received so far if all workers process one, so that none reads the next; nil otherwise.
  var blockedSince: UInt64? { roles.withLock { $0.blockedSince } }

  /// Waits until all threads have ended. Interrupts blocked ones repeatedly, since a signal may arrive just before
  /// a thread blocks.
  /// - Returns: false if a thread was left behind that waits for a layer; it may still use the session.
  func join() -> Bool {
    let hasEnded = supervisor.stop()
    supervised.configure {}
    while running.withLock({ !$0.isEmpty }) {
      for thread in threads.withLock({ Array($0.values) }) { thread.interrupt() }
      usleep(1000)
    }
    for thread in threads.withLock({ Array($0.values) }) { thread.join() }
    lowLatency?.stop()
    sharing?.stop()
    return hasEnded
  }

  // MARK: - Workers

  private func addWorker() throws(Errno) {
    let worker = running.withLock { running in
      let worker = (0...running.count).first { !running.contains($0) } ?? running.count
      running.insert(worker)
      return worker
    }
    do throws(Errno) {
      try prepareWakeUp(of: worker)
      // The thread that had this number before has ended.
      threads.withLock { $0.removeValue(forKey: worker) }?.join()
      let thread = ThreadHandle(try Posix.Thread(name: "request \(worker + 1)") { [self] in work(worker) })
      threads.withLock { $0[worker] = thread }
    } catch {
      running.withLock { _ = $0.remove(worker) }
      throw error
    }
  }

  private func prepareWakeUp(of worker: Int) throws(Errno) {
    while wakeUps.withLock({ $0.count <= worker }) {
      let wakeUp = try WakeUp()
      wakeUps.withLock { $0.append(wakeUp) }
    }
  }

  private func work(_ worker: Int) {
    LayerAccess.current = .shared
    RequestThread.allowDeferral()
    supervised.add(.current)
    let hasRetired = run(worker)
    supervised.remove(.current)
    running.withLock { _ = $0.remove(worker) }
    if !hasRetired { onExit() }
  }

  private func wake(_ worker: Int) { wakeUps.withLock { $0[worker] }.eventFD.signal() }

  /// Adds a worker while every other one is processing a request and perhaps waits for a layer. It ends when it has
  /// nothing to do.
  private func addWorkerIfAllAreBusy() {
    guard roles.withLock({ $0.leaders == 0 && $0.followers.isEmpty }), !session.hasExited,
      running.withLock({ $0.count < Self.limit })
    else { return }
    try? addWorker()
  }

  /// Whether a worker that has become a follower ends, since the pool has others.
  private func retires(_ worker: Int) -> Bool {
    worker >= count && roles.withLock { $0.retire(worker) }
  }

  /// - Returns: whether the worker has retired; otherwise the session has ended.
  private func run(_ worker: Int) -> Bool {
    var buffer = RequestMemory.allocate(
      takesWrites: session.dispatcher.fileSystem.settings.takesWrites)
    defer { free(buffer.mem) }
    var isLeader = roles.withLock { $0.join(worker) }
    var pace = WorkerPace(lowLatency, sharing)
    while true {
      if !isLeader {
        if retires(worker) { return true }
        if !waitForPromotion(worker) { return false }
      }
      pace.wait(on: session.dispatcher.fileSystem.answeringProcessor) { session.hasRequest }
      guard let isRequest = receive(into: &buffer, worker) else { return false }
      isLeader = true
      pace.received()
      if isRequest { isLeader = process(&buffer, worker, &pace) }
    }
  }

  /// Reads a request; a successor waits for the lock before it has the kernel repeat what this thread has read.
  private func receive(into buffer: inout fuse_buf, _ worker: Int) -> Bool? {
    readLocks?.acquire(worker)
    defer { readLocks?.release(worker) }
    return session.receive(into: &buffer)
  }

  /// Processes a request.
  /// - Returns: whether the worker is a leader afterwards.
  private func process(_ buffer: inout fuse_buf, _ worker: Int, _ pace: inout WorkerPace) -> Bool {
    let received = TimeSpec.monotonicNanoseconds
    let header = RequestHeader(buffer)
    pace.record(header)
    RequestThread.begin(request: header.unique, caller: header.caller)
    // Both take less time than to wake another worker.
    let isShort = header.isForget || header.isShortCommand(to: commandFile)
    let hasMore = !isShort && session.hasRequest
    let (woken, isLast) = roles.withLock { ($0.receive(hasMore: hasMore), $0.followers.isEmpty) }
    if let promoted = woken.promoted { wake(promoted) }
    if let watchdog = woken.watchdog, watchdog != woken.promoted { wake(watchdog) }
    if isLast { supervisor.watchWorkers() }
    if header.opcode == RequestHeader.interrupt {
      if let unique = RequestHeader.interrupted(in: buffer) { supervisor.interrupt(unique) }
    } else {
      fuse_session_process_buf(session.pointer, &buffer)
      if let layer = RequestThread.deferredLayer {
        supervisor.deferRequest(RequestBuffer(copying: buffer, header, received: received), for: layer)
      } else if !header.isForget {
        session.requests.latencies.record(since: received)
      }
    }
    RequestThread.begin(request: 0, caller: 0)
    return roles.withLock { $0.finish(worker) { session.hasRequest } }
  }

  /// Sleeps until the worker is a leader.
  /// - Returns: false when the session has ended.
  private func waitForPromotion(_ worker: Int) -> Bool {
    let wakeUp = wakeUps.withLock { $0[worker] }
    while !session.hasExited {
      let timeout = roles.withLock { $0.timeout(of: worker) }
      wakeUp.eventFD.wait(or: -1, milliseconds: timeout)
      let (isLeader, watchdog, isIdle) = roles.withLock { roles in
        let wasAsleep = roles.isWatchdogAsleep
        return (roles.wake(worker), roles.watchdog, roles.isWatchdogAsleep && !wasAsleep)
      }
      if isIdle { session.dispatcher.fileSystem.didBecomeIdle() }
      if isLeader {
        // The new watchdog may be in a wait without timeout.
        if let watchdog { wake(watchdog) } else { supervisor.watchWorkers() }
        return true
      }
    }
    return false
  }
}
