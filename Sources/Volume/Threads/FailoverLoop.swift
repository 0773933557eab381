import Containers
import Layers
import Posix

/// Handles elements in order on one thread, which is replaced when an element makes it wait for a layer that does not
/// answer. The thread left behind ends when the layer answers.
///
/// Invariants: only the runner that `state.runner` names takes elements; `handle` is its thread, `current` is what it
/// handles, and `thread` describes its thread then.
final class FailoverLoop<Element: Sendable>: LayerWatchdog.Loop {
  private struct State {
    var runner = 0
    var handle: ThreadHandle?
    var remaining = Queue<Element>()
    var current: Element?
    var thread: RequestThread?
    /// The call on a layer that was seen last, by its number, and since when.
    var call: (number: UInt64, since: TimeSpec)?
  }

  private let name: String
  private let repeats: Bool
  private let take: @Sendable () -> [Element]?
  private let handle: @Sendable (Element) -> Void
  private let watchdog: LayerWatchdog
  /// Closed at the end.
  private let ended = BlockingQueue<Never>()
  private let state = Locked(order: 10, State())

  /// - Parameters:
  ///   - repeats: whether the next thread handles again what the former one was handling.
  ///   - take: waits for elements; nil at the end.
  init(
    name: String, repeats: Bool, _ watchdog: LayerWatchdog, take: @escaping @Sendable () -> [Element]?,
    handle: @escaping @Sendable (Element) -> Void
  ) {
    self.name = name
    self.repeats = repeats
    self.watchdog = watchdog
    self.take = take
    self.handle = handle
  }

  /// - Throws: EAGAIN.
  func start() throws(Errno) {
    let handle = try startRunner(0)
    state.withLock { $0.handle = handle }
    watchdog.add(self)
  }

  /// Waits until the elements have ended and are handled, and for the thread to end: it holds the file system.
  func join() {
    _ = ended.dequeue()
    state.withLock { $0.handle }?.join()
  }

  private func startRunner(_ runner: Int) throws(Errno) -> ThreadHandle {
    ThreadHandle(try Thread(name: name, hasShortSlice: true) { [self] in run(runner) })
  }

  private func run(_ runner: Int) {
    LayerAccess.current = .shared
    while let element = next(for: runner) {
      handle(element)
      let isReplaced = state.withLock { state in
        if state.runner == runner { state.current = nil }
        return state.runner != runner
      }
      if isReplaced { return }
    }
  }

  /// - Returns: nil at the end, and for a runner that was replaced.
  private func next(for runner: Int) -> Element? {
    while true {
      let (element, isReplaced) = state.withLock { state -> (Element?, Bool) in
        if state.runner != runner { return (nil, true) }
        state.current = state.remaining.dequeue()
        (state.thread, state.call) = (.current, nil)
        return (state.current, false)
      }
      if isReplaced { return nil }
      if let element {
        watchdog.arm()
        return element
      }
      guard let taken = take() else {
        ended.close()
        return nil
      }
      state.withLock { state in
        for element in taken { state.remaining.enqueue(element) }
      }
    }
  }

  func check(now: TimeSpec, _ isolate: (Int) -> Void) -> Bool {
    state.withLock { state in
      guard let current = state.current, let activity = state.thread?.activity else { return false }
      guard let layer = activity.layer, let call = state.call, call.number == activity.calls else {
        state.call = (activity.calls, now)
        return true
      }
      if now.milliseconds(since: call.since) < LayerGate.slowAfter { return true }
      isolate(layer)
      let runner = state.runner + 1
      // If no thread can be started now, the next look tries again.
      guard let handle = try? startRunner(runner) else { return true }
      state.handle?.detach()
      state.handle = handle
      state.runner = runner
      state.current = nil
      if repeats {
        var remaining = Queue<Element>()
        remaining.enqueue(current)
        while let element = state.remaining.dequeue() { remaining.enqueue(element) }
        state.remaining = remaining
      }
      return true
    }
  }
}
