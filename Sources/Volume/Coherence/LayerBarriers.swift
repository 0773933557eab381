import Layers
import Posix

/// Barriers: functions that are called once the jobs of all layers are done, those of the shared worker and those on the
/// threads of isolated layers. A barrier does not wait for a layer that does not answer.
final class LayerBarriers: Sendable {
  /// Milliseconds after which a barrier stops waiting for an isolated layer, even if each of its calls returns in time.
  private static let patience: CInt = 5000

  private struct Barrier {
    var awaitsWorker = true
    /// The isolated layers whose jobs are not done yet.
    var layers: Set<Int>
    let deadline = TimeSpec.monotonic.advanced(byMilliseconds: patience)
    let reached: @Sendable () -> Void

    var isReached: Bool { !awaitsWorker && layers.isEmpty }
  }

  private struct State {
    var barriers: [Int: Barrier] = [:]
    var next = 0
  }

  private let gates: [LayerGate]
  private let signal: WatcherSignal
  private let state = Locked(State())

  /// - Parameter signal: has the watcher thread call `abandonUnresponsive` from time to time, while `isWaiting`.
  init(_ layers: [Layer], _ signal: WatcherSignal) {
    gates = layers.map(\.gate)
    self.signal = signal
  }

  /// Calls a function after the jobs that are queued now.
  func add(after worker: SerialWorker?, _ reached: @escaping @Sendable () -> Void) {
    let isolated = gates.filter { $0.isIsolated && $0.unresponsiveSince == nil }
    let number = state.withLock { state in
      state.next += 1
      state.barriers[state.next] = Barrier(layers: Set(isolated.map(\.layer)), reached: reached)
      return state.next
    }
    let isQueued = worker?.add { [self] in finish(number) { $0.awaitsWorker = false } } ?? false
    if !isQueued { finish(number) { $0.awaitsWorker = false } }
    for gate in isolated {
      gate.run { [self] in finish(number) { $0.layers.remove(gate.layer) } }
    }
    if !isolated.isEmpty { signal.send() }
  }

  /// Whether isolated layers are being waited for.
  var isWaiting: Bool { state.withLock { $0.barriers.values.contains { !$0.layers.isEmpty } } }

  func abandonUnresponsive() {
    let unresponsive = Set(gates.filter { $0.unresponsiveSince != nil }.map(\.layer))
    let now = TimeSpec.monotonic
    for number in state.withLock({ Array($0.barriers.keys) }) {
      finish(number) { barrier in
        barrier.layers = barrier.deadline < now ? [] : barrier.layers.subtracting(unresponsive)
      }
    }
  }

  private func finish(_ number: Int, _ part: (inout Barrier) -> Void) {
    let reached = state.withLock { state -> (@Sendable () -> Void)? in
      guard var barrier = state.barriers[number] else { return nil }
      part(&barrier)
      state.barriers[number] = barrier.isReached ? nil : barrier
      return barrier.isReached ? barrier.reached : nil
    }
    reached?()
  }
}
