import Posix
import Synchronization

/// Keeps a program that makes changes, and the worker that answers it, on one of two processors during a burst.
///
/// A program waits for each of its changes. The kernel wakes program and worker on idle processors, which have halted, and
/// in a guest it takes longer to wake one than to answer. A thread with the lowest priority keeps the other processor busy
/// meanwhile, so that program and worker take turns on one for the price of a switch. It ends soon after the burst, and
/// where other programs want its processor: then the scheduler leaves the two together by itself, or must part them.
final class ProcessorSharing: Sendable {
  /// How long there is no sharing after other programs wanted the processor, in nanoseconds; doubled each time that the
  /// sharing did not last longer than the pause before it.
  static let (minBackoff, maxBackoff): (UInt64, UInt64) = (10_000_000, 1_000_000_000)

  private let split = ProcessorSplit()
  private let requests = Counter()
  /// Whether the last request waits for a disk.
  private let awaitsDisk = Atomic(false)
  /// The bursts for which the thread has kept a processor busy.
  let bursts = Counter()
  private let wakeUp: EventFD
  private let isStopped = Atomic(false)
  /// When the thread last ran on the other processor, in nanoseconds; 0 outside of a burst.
  private let lastRun = Atomic<UInt64>(0)
  /// The thread that makes the changes; 0 for one in another PID namespace.
  private let program = Atomic<Int32>(0)
  /// 4 for each request of another program, less 1 for each of this one; at least 0. It stays as it is at the maximum.
  private let strangers = Atomic<Int32>(0)
  /// Before this time there is no sharing.
  private let backoffEnd = Atomic<UInt64>(0)
  private let thread = Locked<ThreadHandle?>(nil)

  /// Starts the thread; nil unless there are two processors.
  /// - Throws: EAGAIN, EMFILE.
  init?(processors: Int = processorCount) throws(Errno) {
    guard processors == 2 else { return nil }
    wakeUp = try EventFD()
    let handle = ThreadHandle(try Thread(name: "share processor") { [self] in run() })
    thread.withLock { $0 = handle }
  }

  /// The processor of the program and the workers; nil while they may run anywhere, or the other one is not kept busy.
  var processor: Int32? {
    guard let processor = split.answering else { return nil }
    let lastRun = lastRun.load(ordering: .relaxed)
    return lastRun > 0 && TimeSpec.monotonicNanoseconds < lastRun + SharedBurst.longestGap ? processor : nil
  }

  /// Records a request.
  /// - Parameters:
  ///   - caller: the thread that makes it; 0 if the kernel does.
  ///   - awaitsDisk: whether it is an fsync(2).
  func record(caller: Int32, awaitsDisk: Bool = false) {
    requests.add(1)
    self.awaitsDisk.store(awaitsDisk, ordering: .relaxed)
    if split.answering == nil || caller == 0 { return }
    let strangers = strangers.load(ordering: .relaxed)
    if strangers >= SharedBurst.maxStrangers { return }
    let isStranger = caller != program.load(ordering: .relaxed)
    // What another worker counts at the same time may be lost.
    self.strangers.store(isStranger ? strangers + 4 : max(strangers - 1, 0), ordering: .relaxed)
  }

  /// Begins to share the processor of a program.
  /// - Parameter program: the program's thread; 0 for one in another PID namespace.
  func begin(beside program: Int32) {
    guard split.answering == nil, TimeSpec.monotonicNanoseconds >= backoffEnd.load(ordering: .relaxed) else {
      return
    }
    self.program.store(program, ordering: .relaxed)
    strangers.store(0, ordering: .relaxed)
    split.begin(beside: program, or: Thread.currentProcessor)
    wakeUp.signal()
  }

  /// Ends the thread.
  func stop() {
    isStopped.store(true, ordering: .relaxed)
    wakeUp.signal()
    thread.withLock { $0 }?.join()
  }

  private func run() {
    Thread.lowerPriority()
    var binding = ProcessorBinding()
    var backoff = Self.minBackoff
    while !isStopped.load(ordering: .relaxed) {
      wakeUp.wait(or: -1, milliseconds: -1)
      guard let processor = split.answering else { continue }
      binding.avoid(processor)
      bursts.add(1)
      let start = TimeSpec.monotonicNanoseconds
      let wasUndisturbed = keepBusy()
      let end = TimeSpec.monotonicNanoseconds
      if wasUndisturbed || end - start > backoff { backoff = Self.minBackoff }
      if !wasUndisturbed {
        backoffEnd.store(end + backoff, ordering: .relaxed)
        backoff = min(2 * backoff, Self.maxBackoff)
      }
      lastRun.store(0, ordering: .relaxed)
      split.end()
    }
  }

  /// Keeps the processor busy until the burst ends.
  /// - Returns: false if another program wanted it, or made requests.
  private func keepBusy() -> Bool {
    var burst = SharedBurst(now: TimeSpec.monotonicNanoseconds, requests: requests.count)
    while !isStopped.load(ordering: .relaxed) {
      lastRun.store(burst.now, ordering: .relaxed)
      Thread.yield()
      let state = burst.look(
        now: TimeSpec.monotonicNanoseconds, requests: requests.count,
        strangers: strangers.load(ordering: .relaxed), awaitsDisk: awaitsDisk.load(ordering: .relaxed))
      if state != .lasts { return state == .isOver }
    }
    return true
  }
}
