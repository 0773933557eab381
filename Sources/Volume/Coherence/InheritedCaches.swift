import Fuse
import Glibc
import Layers
import Posix

/// Compares the kernel's caches, which a predecessor has filled, with the layers, and invalidates the differences.
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
  func compareNext(of walk: InheritedWalk) -> Bool {
    for names in walk.takeUnobserved() { observe(names) }
    let sliceEnd = TimeSpec.monotonic.advanced(byMilliseconds: InheritedWalk.timeSlice)
    while let directory = walk.next() {
      comparePath(to: directory)
      walk.add(store.childDirectories(of: directory))
      if sliceEnd < TimeSpec.monotonic { return false }
    }
    // Some may have been moved meanwhile to where the walk had been.
    let left = store.allDirectories { $0.isInherited }
    walk.add(left)
    if left.isEmpty { walk.end() }
    return left.isEmpty
  }

  /// Compares a directory, once, after those above it. It is watched first, so that later changes are reported.
  func comparePath(to directory: NodeID) {
    for next in store.inheritedPath(to: directory) { compare(next) }
  }

  private func compare(_ directory: NodeID) {
    // That it is resolved again makes it unknown.
    let recorded = recordedFingerprint(of: directory)
    let change = try? store.refreshParts(of: directory, isForced: true, readsWhiteouts: false)
    if let parts = change?.arrived {
      let expired = invalidateNames(of: directory, parts, recorded) { formerDirectory(directory) }
      if let expired { observe(expired) }
      for (file, name) in store.changedFiles(in: directory, parts) {
        invalidator.expire(name, in: directory)
        invalidator.dropFiles(lastNamed: name, in: directory)
        invalidator.invalidate(file, .content)
      }
    }
    store.didCompare(directory)
    // Those that this process has added so far are not covered, since this directory was not.
    for child in store.childDirectories(of: directory) where !store.isInherited(child) {
      invalidator.refresh(child, isForced: false)
    }
  }

  /// A directory as the former layers have it.
  private func formerDirectory(_ directory: NodeID) -> MergedDirectory? {
    guard let former else { return nil }
    let walk = invalidator.inheritedWalk
    var found: MergedDirectory?
    if directory != .root, let (parent, name) = try? store.parent(of: directory),
      let above = walk.former(parent)
    {
      found = above.child(name)
    } else {
      found = former.directory(directory)
    }
    if let found { walk.keep(found, asFormer: directory) }
    return found
  }

  private func recordedFingerprint(of directory: NodeID) -> Fingerprint {
    invalidator.inheritedWalk.takeFingerprint(of: directory) ?? store.recordedFingerprint(of: directory)
  }

  /// - Parameters:
  ///   - parts: that the directory has now.
  ///   - before: the directory as the former layers have it.
  /// - Returns: the names that the kernel looks up again; nil for none.
  private func invalidateNames(
    of directory: NodeID, _ parts: [LayerDirectory], _ recorded: Fingerprint, _ before: () -> MergedDirectory?
  ) -> ExpiredNames? {
    let fingerprint = store.fingerprint(of: parts)
    defer { store.setFingerprint(fingerprint, of: directory) }
    if recorded == fingerprint, recorded != .unknown { return nil }
    return invalidateNames(of: directory, parts, recorded, from: before())
  }

  private func invalidateNames(
    of directory: NodeID, _ parts: [LayerDirectory], _ recorded: Fingerprint, from before: MergedDirectory?
  ) -> ExpiredNames {
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
    let all = affected ?? names.union((before?.parts ?? []).flatMap(Invalidator.names))
    invalidator.invalidateTables(ofCatalogs: all.union(known), in: directory)
    return ExpiredNames(directory: directory, before: before, names: all)
  }

  private func observe(_ expired: ExpiredNames) {
    guard let observer = invalidator.observer else { return }
    guard let former else { return observer.record(.directory(expired.directory)) }
    let changes = former.changes(of: expired.directory, from: expired.before, expired.names)
    for change in changes { observer.record(change) }
  }
}

// MARK: - Changes of the layers

extension InheritedCaches {
  /// A directory that is in layers which were added, removed or moved.
  fileprivate struct Affected {
    let node: NodeID
    /// Its parts in these layers.
    let parts: [LayerDirectory]
    /// As the former layers have it.
    let before: MergedDirectory?
  }

  /// Expires the names that a switch of the layers affects. The walk, for which the program that switches does not wait,
  /// observes these names later, and finds the changes that other programs have made meanwhile.
  func invalidateChangedLayers(before walk: InheritedWalk) {
    defer { invalidator.unreadEvents?.close() }
    guard let changed = store.stack.changedIndexes, !changed.contains(where: store.stack.isOpaque) else {
      return invalidateTree(.root)
    }
    let roots = changed.map { store.stack[$0] }.filter { !$0.isAbsent }.map(\.root)
    // The events are checked after the names are read: if a layer has lost a name before, that shows by its event.
    if invalidator.unreadEvents != nil, expireNames(in: roots), invalidator.unreadEvents?.areNone == true {
      return
    }
    var pending = [Affected(node: .root, parts: roots, before: former?.root)]
    while let directory = pending.popLast() {
      if let names = invalidateNames(of: directory) { walk.add(names) }
      pending += affectedChildren(of: directory)
    }
  }

  /// Expires all names and listings of some layers, which suffices if these are unchanged since the kernel cached them.
  /// The walk makes the full comparison, which takes several calls for each part of each directory.
  /// - Returns: false if not all of them could be read.
  private func expireNames(in roots: [LayerDirectory]) -> Bool {
    var pending = [(node: NodeID.root, parts: roots)]
    while let (directory, parts) = pending.popLast() {
      guard let names = Self.names(of: parts) else { return false }
      // From now on the kernel caches another state than the recorded one, to which a later change may lead back.
      invalidator.inheritedWalk.keep(recordedFingerprint(of: directory), of: directory)
      store.setFingerprint(.unknown, of: directory)
      for name in names { invalidator.expire(name, in: directory) }
      invalidator.invalidateTables(ofCatalogs: names, in: directory)
      invalidator.invalidateListing(of: directory)
      let keys = Set(names.map(key))
      for (child, name) in store.namedChildDirectories(of: directory) where keys.contains(key(of: name)) {
        guard let parts = Self.parts(of: parts, below: name) else {
          invalidateTree(child)
          continue
        }
        if !parts.isEmpty { pending.append((child, parts)) }
      }
    }
    return true
  }

  private func invalidateNames(of directory: Affected) -> ExpiredNames? {
    let recorded = recordedFingerprint(of: directory.node)
    let change = try? store.refreshParts(of: directory.node, isForced: true, readsWhiteouts: false)
    guard let parts = change?.arrived else { return nil }
    return invalidateNames(of: directory.node, parts, recorded) { directory.before }
  }

  private func affectedChildren(of directory: Affected) -> [Affected] {
    let names = affectedNames(of: directory.parts)
    return store.namedChildDirectories(of: directory.node).compactMap { child, name in
      if let names, !names.contains(key(of: name)) { return nil }
      guard let parts = Self.parts(of: directory.parts, below: name) else {
        invalidateTree(child)
        return nil
      }
      return parts.isEmpty ? nil : Affected(node: child, parts: parts, before: directory.before?.child(name))
    }
  }

  /// The names that parts have or hide, without case if that does not count; nil if one cannot be read.
  private func affectedNames(of parts: [LayerDirectory]) -> Set<[UInt8]>? {
    Self.names(of: parts).map { Set($0.map(key)) }
  }

  /// The names that parts have or hide; nil if one cannot be read.
  private static func names(of parts: [LayerDirectory]) -> Set<[UInt8]>? {
    var names: Set<[UInt8]> = []
    for part in parts {
      guard let found = try? part.affectedNames() else { return nil }
      names.formUnion(found)
    }
    return names
  }

  private func key(of name: [UInt8]) -> [UInt8] {
    store.stack.foldsNames ? NameFolding.key(of: name) : name
  }

  /// Goes through the known directories from the top down.
  private func invalidateTree(_ root: NodeID) {
    var pending = [root]
    while let directory = pending.popLast() {
      comparePath(to: directory)
      pending += store.childDirectories(of: directory)
    }
  }

  /// The directories of a name in some parts of the directory above; nil if one of these hides what is below it.
  private static func parts(of parts: [LayerDirectory], below name: [UInt8]) -> [LayerDirectory]? {
    var found: [LayerDirectory] = []
    for part in parts {
      let effect = try? withCName(name) { name throws(Errno) in part.effect(on: name) }
      switch effect {
      case .parts(let directories): found += directories
      case .some(.none): break
      case .hides, nil: return nil
      }
    }
    return found
  }
}

extension MergedDirectory {
  /// The directory of a name; nil if there is none.
  fileprivate func child(_ name: [UInt8]) -> MergedDirectory? {
    let entry = try? withCName(name) { name throws(Errno) in try lookup(name, isLikelyDirectory: true) }
    guard case .directory(let directory, _) = entry else { return nil }
    return directory
  }
}

/// Names of a directory that the kernel has to look up again.
struct ExpiredNames {
  let directory: NodeID
  /// The directory as the former layers have it.
  let before: MergedDirectory?
  let names: Set<[UInt8]>
}

/// The directories whose caches, filled by a predecessor, are yet to be compared with the layers. The walk gives way to the
/// invalidations that come meanwhile.
final class InheritedWalk: Sendable {
  /// Milliseconds.
  static let timeSlice: CInt = 2

  private struct State {
    var directories = [NodeID.root]
    /// The names that a change of the layers has affected, and that were not observed yet.
    var unobserved: [ExpiredNames] = []
    /// The recorded fingerprints of directories that are to be compared, where the record was reset since.
    var fingerprints: [NodeID: Fingerprint] = [:]
    /// Some directories as the former layers have them, from which those below are found.
    var former: [NodeID: MergedDirectory] = [:]
  }
  /// Each holds its parts open.
  private static let mostFormer = 32
  private let state = Locked(State())

  /// The next directory, from the top down.
  func next() -> NodeID? { state.withLock { $0.directories.popLast() } }

  func add(_ directories: [NodeID]) { state.withLock { $0.directories += directories } }

  func add(_ names: ExpiredNames) { state.withLock { $0.unobserved.append(names) } }

  func former(_ directory: NodeID) -> MergedDirectory? { state.withLock { $0.former[directory] } }

  func keep(_ former: MergedDirectory, asFormer directory: NodeID) {
    let dropped = state.withLock { state -> [NodeID: MergedDirectory] in
      defer { state.former[directory] = former }
      if state.former.count < Self.mostFormer { return [:] }
      defer { state.former = [:] }
      return state.former
    }
    withExtendedLifetime(dropped) {}
  }

  /// To be called once there is no next directory.
  func end() {
    let dropped = state.withLock { state in
      defer { state.former = [:] }
      return state.former
    }
    withExtendedLifetime(dropped) {}
  }

  func keep(_ fingerprint: Fingerprint, of directory: NodeID) {
    state.withLock { $0.fingerprints[directory] = fingerprint }
  }

  func takeFingerprint(of directory: NodeID) -> Fingerprint? {
    state.withLock { $0.fingerprints.removeValue(forKey: directory) }
  }

  func takeUnobserved() -> [ExpiredNames] {
    state.withLock { state in
      defer { state.unobserved = [] }
      return state.unobserved
    }
  }
}
