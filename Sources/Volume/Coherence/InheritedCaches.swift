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
    if recorded != fingerprint || recorded == .unknown { takeBackNames(of: directory, parts, recorded) }
    for (file, name) in store.changedFiles(in: directory, parts) {
      invalidator.expire(name, in: directory)
      invalidator.invalidate(file, .content)
    }
    store.setFingerprint(fingerprint, of: directory)
  }

  private func takeBackNames(
    of directory: NodeID, _ parts: [LayerDirectory], _ recorded: Fingerprint
  ) {
    let before = former?.directory(directory)
    let isUnchangedOnDisk = before.map { recorded != .unknown && store.fingerprint(of: $0.parts) == recorded }
    let affected =
      isUnchangedOnDisk == true ? FormerLayers.affectedNames(from: before?.parts ?? [], to: parts) : nil
    // Waits for requests in flight, which may be answered from before the watches.
    invalidator.expire(Invalidator.noName, in: directory)
    let names = affected ?? Set(parts.flatMap(Invalidator.names))
    let known =
      affected == nil
      ? store.knownNames(in: directory).union(store.spellings?.all(in: directory) ?? []) : []
    for name in names.union(known) { invalidator.expire(name, in: directory) }
    invalidator.invalidateListing(of: directory)
    observe(
      directory, from: before, affected ?? names.union((before?.parts ?? []).flatMap(Invalidator.names)))
  }

  /// - Parameter names: those that may have changed.
  private func observe(_ directory: NodeID, from before: MergedDirectory?, _ names: Set<[UInt8]>) {
    guard let observer = invalidator.observer else { return }
    guard let former else { return observer.record(.directory(directory)) }
    for change in former.changes(of: directory, from: before, names) { observer.record(change) }
  }
}
