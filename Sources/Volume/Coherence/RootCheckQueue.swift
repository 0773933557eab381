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

/// Checks the roots of layers on a thread of its own: a layer may not answer, and the watcher thread must not wait.
/// Checks of one layer are coalesced while they wait.
final class RootCheckQueue: Sendable {
  private let worker = SerialWorker(name: "layer-roots")
  /// What waits, by layer.
  private let queued = Locked<[Int: RootCheck]>([:])

  /// - Throws: EAGAIN.
  func start() throws(Errno) { try worker.start() }

  /// Ends the thread after the queued checks.
  func stop() { worker.stop() }

  /// Queues a check of a layer.
  /// - Parameter run: checks the layer for all reasons that were given until then.
  func add(_ check: RootCheck, of layer: Int, _ run: @escaping @Sendable (RootCheck) -> Void) {
    let isQueued = queued.withLock { queued in
      defer { queued[layer, default: []].formUnion(check) }
      return queued[layer] != nil
    }
    if isQueued { return }
    _ = worker.add { [self] in
      if let check = queued.withLock({ $0.removeValue(forKey: layer) }) { run(check) }
    }
  }

  /// Calls a function after the checks that are queued now.
  func afterChecks(_ completion: @escaping @Sendable () -> Void) {
    if !worker.add(completion) { completion() }
  }
}
