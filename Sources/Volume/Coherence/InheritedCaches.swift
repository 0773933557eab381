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

  /// Compares directories that the kernel knows with the layers, until the walk or a time slice ends.
  /// - Returns: whether the walk has ended.
  func takeBack(_ walk: InheritedWalk) -> Bool {
    let sliceEnd = TimeSpec.monotonic.advanced(byMilliseconds: InheritedWalk.timeSlice)
    while let directory = walk.next() {
      takeBack(directory)
      walk.add(store.childDirectories(of: directory))
      if sliceEnd < TimeSpec.monotonic { return false }
    }
    return true
  }

  /// Goes through the known directories from the top down. Each is watched first, so that later changes are reported.
  private func takeBackTree(_ root: NodeID) {
    var pending = [root]
    while let directory = pending.popLast() {
      takeBack(directory)
      pending += store.childDirectories(of: directory)
    }
  }

  private func takeBack(_ directory: NodeID) {
    // That it is resolved again makes it unknown.
    let recorded = store.recordedFingerprint(of: directory)
    let change = try? store.refreshParts(of: directory, isForced: true, readsWhiteouts: false)
    if let change { takeBack(change.arrived, of: directory, recorded) }
  }

  /// Takes back what a change of the layers has done: in the directories that the layers have which came, went or moved.
  /// What other programs have changed meanwhile is left to `takeBack`.
  func takeBackChangedLayers() {
    guard let changed = store.stack.changedIndexes, !changed.contains(where: store.stack.isOpaque) else {
      return takeBackTree(.root)
    }
    var pending = [(NodeID.root, changed.map { store.stack[$0] }.filter { !$0.isAbsent }.map(\.root))]
    while let (directory, parts) = pending.popLast() {
      takeBack(directory)
      for (child, name) in store.namedChildDirectories(of: directory) {
        guard let below = Self.parts(of: parts, below: name) else {
          takeBackTree(child)
          continue
        }
        if !below.isEmpty { pending.append((child, below)) }
      }
    }
  }

  /// The directories of a name in some parts of the directory above; nil if one of these hides what is below it.
  private static func parts(of parts: [LayerDirectory], below name: [UInt8]) -> [LayerDirectory]? {
    var found: [LayerDirectory] = []
    for part in parts {
      let effect = try? withCName(name) { name throws(Errno) in part.effect(on: name) }
      switch effect {
      case .part(let directory): found.append(directory)
      case .some(.none): break
      case .hides, nil: return nil
      }
    }
    return found
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

/// The directories that are yet to be compared with what a predecessor has had the kernel cache. The walk gives way to the
/// invalidations that come meanwhile.
final class InheritedWalk: Sendable {
  /// Milliseconds.
  static let timeSlice: CInt = 2

  private let pending = Locked([NodeID.root])

  /// The next directory, from the top down.
  func next() -> NodeID? { pending.withLock { $0.popLast() } }

  func add(_ directories: [NodeID]) { pending.withLock { $0 += directories } }
}
