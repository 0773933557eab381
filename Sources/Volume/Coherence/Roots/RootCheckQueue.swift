import Layers
import Posix

/// Why the root of a layer has to be checked.
struct RootCheck: OptionSet {
  let rawValue: UInt8
  /// Its path may lead elsewhere.
  static let path = RootCheck(rawValue: 1)
  /// Something may be mounted again where its file system was unmounted.
  static let mount = RootCheck(rawValue: 2)
  /// Its archive was written to, and may be written further.
  static let archiveModified = RootCheck(rawValue: 4)
  /// Its archive was written and closed, or has other attributes.
  static let archiveWritten = RootCheck(rawValue: 8)
}

/// Checks the roots of layers on a thread of its own, and those of isolated layers on theirs: a layer may not answer,
/// and the watcher thread must not wait. Checks of one layer are coalesced while they wait.
final class RootCheckQueue: Sendable {
  private let worker = SerialWorker(name: "layer-roots")
  private let barriers: LayerBarriers
  /// What waits, by layer.
  private let queued = Locked<[Int: RootCheck]>([:])

  init(_ barriers: LayerBarriers) { self.barriers = barriers }

  /// - Throws: EAGAIN.
  func start(_ watchdog: LayerWatchdog) throws(Errno) { try worker.start(watchdog, repeats: true) }

  /// Ends the thread after the queued checks.
  func stop() { worker.stop() }

  /// Queues a check of a layer.
  /// - Parameter run: checks the layer for all reasons that were given until then.
  func add(_ check: RootCheck, of gate: LayerGate, _ run: @escaping @Sendable (RootCheck) -> Void) {
    let layer = gate.layer
    let isQueued = queued.withLock { queued in
      defer { queued[layer, default: []].formUnion(check) }
      return queued[layer] != nil
    }
    if isQueued { return }
    let job: SerialWorker.Job = { [self] in
      if let check = queued.withLock({ $0.removeValue(forKey: layer) }) { run(check) }
    }
    if gate.isIsolated { gate.run(job) } else { _ = worker.add(job) }
  }

  /// Calls a function after the checks that are queued now, except for layers that do not answer.
  func afterChecks(_ completion: @escaping @Sendable () -> Void) { barriers.add(after: worker, completion) }
}
