import Layers
import Posix
import Synchronization

/// Finds the loops that a call on a layer keeps from going on, such as one on a disk that has stopped answering.
///
/// It sleeps while no loop is busy.
final class LayerWatchdog: Sendable {
  /// A loop that it watches.
  protocol Loop: AnyObject, Sendable {
    /// Has another thread go on if the present one has been in the same call on a layer for too long.
    /// - Parameter isolate: isolates the layer, so that the other thread does not wait for it, too.
    /// - Returns: whether the loop is busy.
    func check(now: TimeSpec, _ isolate: (Int) -> Void) -> Bool
  }

  /// Milliseconds between two looks.
  private static let interval: CInt = 250

  private let isolate: @Sendable (Int) -> Void
  private let loops = Locked<[any Loop]>([])
  private let eventFD: EventFD
  private let isArmed = Atomic(false)
  private let isStopped = Atomic(false)
  private let thread = Locked<ThreadHandle?>(nil)

  /// - Throws: EMFILE, ENFILE.
  init(isolate: @escaping @Sendable (Int) -> Void) throws(Errno) {
    self.isolate = isolate
    eventFD = try EventFD()
  }

  /// - Throws: EAGAIN.
  func start() throws(Errno) {
    isStopped.store(false, ordering: .relaxed)
    let handle = ThreadHandle(try Thread(name: "layer-watchdog") { [self] in run() })
    thread.withLock { $0 = handle }
  }

  /// Ends the thread, after those of the loops.
  func stop() {
    isStopped.store(true, ordering: .relaxed)
    eventFD.signal()
    thread.withLock { $0 }?.join()
    loops.withLock { $0 = [] }
  }

  func add(_ loop: any Loop) { loops.withLock { $0.append(loop) } }

  /// Records that a loop has become busy.
  func arm() {
    if isArmed.load(ordering: .relaxed) || isArmed.exchange(true, ordering: .acquiringAndReleasing) { return }
    eventFD.signal()
  }

  private func run() {
    while !isStopped.load(ordering: .relaxed) {
      eventFD.wait(or: -1, milliseconds: isArmed.load(ordering: .relaxed) ? Self.interval : -1)
      if check() { continue }
      isArmed.store(false, ordering: .sequentiallyConsistent)
      // A loop may have become busy just before.
      if check() { arm() }
    }
  }

  private func check() -> Bool {
    let now = TimeSpec.monotonic
    return loops.withLock { $0 }.reduce(false) { isBusy, loop in loop.check(now: now, isolate) || isBusy }
  }
}
