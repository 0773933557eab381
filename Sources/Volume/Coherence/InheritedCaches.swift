import Fuse
import Glibc
import Layers
import Posix

/// Takes back what the kernel has cached from a predecessor and the layers no longer have.
struct InheritedCaches {
  private let invalidator: Invalidator
  /// nil after a death.
  private let former: FormerLayers?
  private var store: NodeStore { invalidator.store }

  init(_ invalidator: Invalidator) {
    self.invalidator = invalidator
    former = FormerLayers(invalidator.store)
  }

  /// Microseconds for which the requests that have waited for this process go first: the comparison keeps a processor
  /// busy.
  private static let delay: UInt32 = 10_000

  /// Goes through the known directories from the top down. Each is watched first, so that later changes are reported.
  /// - Parameter isUrgent: whether a program waits for it.
  func takeBack(isUrgent: Bool) {
    if !isUrgent { usleep(Self.delay) }
    var pending = [NodeID.root]
    while let directory = pending.popLast() {
      // That it is resolved again makes it unknown.
      let recorded = store.recordedFingerprint(of: directory)
      let change = try? store.refreshParts(of: directory, isForced: true, readsWhiteouts: false)
      if let change { takeBack(change.arrived, of: directory, recorded) }
      pending += store.childDirectories(of: directory)
    }
  }

  private func takeBack(_ parts: [LayerDirectory], of directory: NodeID, _ recorded: Fingerprint) {
    let fingerprint = store.fingerprint(of: parts)
    let isUnchanged = recorded == fingerprint && recorded != .unknown
    if !isUnchanged {
      let names = Set(parts.flatMap(Invalidator.names))
      takeBackNames(of: directory, names)
      observe(names, of: directory)
    }
    for (file, name) in store.changedFiles(in: directory, parts) {
      if isUnchanged { invalidator.expire(name, in: directory) }
      invalidator.invalidate(file, .content)
    }
    store.setFingerprint(fingerprint, of: directory)
  }

  /// - Parameter names: of all parts.
  private func observe(_ names: Set<[UInt8]>, of directory: NodeID) {
    guard let observer = invalidator.observer else { return }
    guard let former else { return observer.record(.directory(directory)) }
    for change in former.changes(of: directory, names) { observer.record(change) }
  }

  private func takeBackNames(of directory: NodeID, _ names: Set<[UInt8]>) {
    // Waits for requests in flight, which may be answered from before the watches.
    invalidator.expire(Invalidator.noName, in: directory)
    for name in names.union(store.knownNames(in: directory)) { invalidator.expire(name, in: directory) }
    invalidator.invalidateListing(of: directory)
  }
}
