import CFuse
import Glibc
import Posix
import Synchronization

/// Sees to it that no request waits for a layer that it does not need, or longer than it has to.
///
/// Its thread looks every `interval` at the requests that were put off and at what the workers do; while there is
/// nothing to look at, it sleeps.
final class RequestSupervisor: @unchecked Sendable {
  /// Milliseconds between two looks.
  private static let interval: CInt = 10

  private unowned let session: Session
  private let requests = Locked(order: 10, DeferredRequests())
  private let bulkheads = Locked<[Int: Bulkhead]>([:])
  private let workers: SupervisedWorkers
  /// Requests that were interrupted while a worker processed them, or before they were put off.
  private let interrupted = Locked(InterruptedRequests())
  private let fallbacks = BlockingQueue<Fallback>()
  private let eventFD: EventFD
  private let isStopped = Atomic(false)
  private let threads = Locked<[ThreadHandle]>([])

  /// A request that is tried once more, on a thread that must not wait.
  private struct Fallback {
    let buffer: RequestBuffer
    let access: LayerAccess
  }

  init(_ session: Session, _ workers: SupervisedWorkers) throws(Errno) {
    self.session = session
    self.workers = workers
    eventFD = try EventFD()
  }

  private var fileSystem: any FileSystem { session.dispatcher.fileSystem }

  func start() throws(Errno) {
    let supervisor = ThreadHandle(try Thread(name: "supervisor") { [self] in supervise() })
    threads.withLock { $0.append(supervisor) }
    let fallback = ThreadHandle(try Thread(name: "fallback") { [self] in runFallback() })
    threads.withLock { $0.append(fallback) }
  }

  /// Ends the threads. Those that wait for a layer are left behind.
  /// - Returns: whether none is left.
  func stop() -> Bool {
    isStopped.store(true, ordering: .relaxed)
    eventFD.signal()
    fallbacks.close()
    for thread in threads.withLock({ $0 }) { thread.join() }
    let bulkheads = bulkheads.withLock { Array($0.values) }
    for bulkhead in bulkheads { bulkhead.close() }
    for _ in 0..<100 where bulkheads.contains(where: \.hasThreads) { usleep(1000) }
    return !bulkheads.contains(where: \.hasThreads)
  }

  // MARK: - Requests that are put off

  /// Has a thread of the layer process a request that a worker has put off.
  func deferRequest(_ buffer: RequestBuffer, for layer: Int) {
    let header = buffer.header
    guard header.isRepeatable || header.isChange, fuse_session_exited(session.pointer) == 0 else {
      return session.reply(to: header.unique, .ioError)
    }
    let isUnresponsive = fileSystem.policy(forLayer: layer).isUnresponsive
    if isUnresponsive, header.isRepeatable, answersFromKnown(buffer) { return }
    let isInterrupted = interrupted.withLock { $0.remove(header.unique) }
    requests.withLock { requests in
      requests.add(
        buffer, for: layer, isInterrupted: isInterrupted,
        wasTriedWithKnown: isUnresponsive || header.isChange, now: .monotonic)
    }
    eventFD.signal()
    do throws(Errno) { try bulkhead(of: layer).wake() } catch {
      requests.withLock { $0.answer(header.unique) }
      session.reply(to: header.unique, error)
    }
  }

  /// Tries to answer a request from the last known state, on the worker that has put it off.
  private func answersFromKnown(_ buffer: RequestBuffer) -> Bool {
    RequestThread.begin(request: buffer.header.unique, caller: buffer.header.caller)
    LayerAccess.with(.lastKnown) { buffer.process(in: session.pointer) }
    return RequestThread.deferredLayer == nil
  }

  private func bulkhead(of layer: Int) -> Bulkhead {
    bulkheads.withLock { bulkheads in
      let bulkhead = bulkheads[layer] ?? Bulkhead(layer: layer, self)
      bulkheads[layer] = bulkhead
      return bulkhead
    }
  }

  /// Processes the next request of a layer, on one of the layer's threads.
  func processNext(of layer: Int) {
    guard let buffer = requests.withLock({ $0.next(for: layer) }) else { return }
    RequestThread.begin(request: buffer.header.unique, caller: buffer.header.caller)
    buffer.process(in: session.pointer)
    RequestThread.begin(request: 0, caller: 0)
    session.requests.latencies.record(since: buffer.received)
    requests.withLock { $0.finish(buffer.header.unique) }
  }

  /// Handles FUSE_INTERRUPT, which has no reply: a signal has arrived at the caller.
  func interrupt(_ unique: UInt64) {
    let isDeferred = requests.withLock { $0.interrupt(unique) }
    if !isDeferred { interrupted.withLock { $0.add(unique, now: .monotonic) } }
    eventFD.signal()
  }

  /// Has the workers looked at until all are responsive again.
  func watchWorkers() {
    if workers.beginWatch() { eventFD.signal() }
  }

  // MARK: - The supervisor

  private func supervise() {
    while !isStopped.load(ordering: .relaxed) {
      let isBusy =
        workers.isWatched || requests.withLock { !$0.isEmpty } || interrupted.withLock { !$0.isEmpty }
      eventFD.wait(or: -1, milliseconds: isBusy ? Self.interval : -1)
      workers.check(now: .monotonic) { fileSystem.layerIsSlow($0) }
      endInterrupted()
      for action in actions() { perform(action) }
    }
  }

  private func actions() -> [DeferredRequests.Action] {
    requests.withLock { requests in
      requests.actions(
        now: .monotonic, policy: { fileSystem.policy(forLayer: $0) }, isOwn: Self.isOwn,
        signals: { try? PendingSignals(of: $0) })
    }
  }

  private static func isOwn(_ thread: Int32) -> Bool { access("/proc/self/task/\(thread)", F_OK) == 0 }

  private func perform(_ action: DeferredRequests.Action) {
    switch action {
    case .answerFromKnown(let buffer): fallbacks.enqueue(Fallback(buffer: buffer, access: .lastKnown))
    case .answerWithoutLayer(let buffer): fallbacks.enqueue(Fallback(buffer: buffer, access: .skipping))
    case .fail(let header, let error):
      requests.withLock { $0.answer(header.unique) }
      session.reply(to: header.unique, error)
    }
  }

  /// Answers requests by EINTR whose callers are being killed, while workers wait for layers or replies are pending.
  private func endInterrupted() {
    let pending = interrupted.withLock { $0.all }
    if pending.isEmpty { return }
    let (activities, callers) = (workers.activities, session.dispatcher.pendingReplies.callers)
    for unique in pending {
      let known = callers[unique] ?? activities[unique]?.caller
      interrupted.withLock { $0.see(unique, known != nil, now: .monotonic) }
      guard let caller = known, (try? PendingSignals(of: caller))?.isFatal == true else { continue }
      let repliesItself =
        callers[unique] == nil
        ? interrupted.withLock { $0.isAtWork(on: unique, activities[unique], now: .monotonic) }
        : session.dispatcher.pendingReplies.interrupt(unique, now: .monotonic)
      // What is left of the work must not be done after the reply.
      if repliesItself { continue }
      interrupted.withLock { _ = $0.remove(unique) }
      session.reply(to: unique, .interrupted)
    }
  }

  // MARK: - The fallback thread

  private func runFallback() {
    RequestThread.allowDeferral()
    RequestThread.repeatRequests()
    while let fallback = fallbacks.dequeue() {
      let unique = fallback.buffer.header.unique
      RequestThread.begin(request: unique, caller: fallback.buffer.header.caller)
      LayerAccess.with(fallback.access) { fallback.buffer.process(in: session.pointer) }
      let isAnswered = RequestThread.deferredLayer == nil
      RequestThread.begin(request: 0, caller: 0)
      if isAnswered {
        requests.withLock { $0.answer(unique) }
      } else if fallback.access == .skipping {
        requests.withLock { $0.answer(unique) }
        session.reply(to: unique, .ioError)
      }
    }
  }
}
