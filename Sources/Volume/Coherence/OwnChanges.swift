import Containers
import Fuse
import Layers
import Posix

/// Tells the events that the mount's own changes cause in the upper layer from those that other programs cause: the
/// kernel has made the former in its caches already, and has told those who watch the mount.
///
/// An event does not say which process has caused it. So the state in which each change leaves an entry is kept: an event
/// that finds the entry in this state has nothing to tell. What other programs do to a file before a change of ours is
/// found by looking at the file first. This needs a file system that gives two changes with a look in between different
/// change times (multigrain timestamps, Linux 6.13).
final class OwnChanges: LookupObserver {
  /// What is compared: everything that another program changes shows in one of them.
  private struct FileState: Equatable {
    let identity: FileIdentity
    let size: UInt64
    let changed: TimeSpec

    init(_ status: FileStatus) {
      (identity, size, changed) = (status.identity, status.size, status.changed)
    }
  }

  /// A file, or a directory's attributes.
  private struct FileRecord {
    var state: FileState
    /// Whether all events of what happened before the first of our changes have been read.
    var isSettled: Bool
  }

  /// What a name has in the upper layer.
  private struct EntryRecord: Equatable {
    /// nil for nothing.
    let identity: FileIdentity?
    /// A lookup does not find it.
    var mayBeWhiteout = false
  }

  private struct State {
    var names = LRUCache<EntryKey, EntryRecord>(countLimit: OwnChanges.limit)
    var files = LRUCache<NodeID, FileRecord>(countLimit: OwnChanges.limit)
    var pendingNames = PendingChanges<EntryKey>()
    var pendingFiles = PendingChanges<NodeID>()
  }

  /// The most names and the most files that are kept. The events of others are handled as those of other programs.
  private static let limit = 4096

  private let state = Locked(State())
  private let queue: InvalidationQueue

  init(_ queue: InvalidationQueue) { self.queue = queue }

  // MARK: - Changes

  /// Records what our change has left at a name.
  /// - Parameter identity: nil for nothing.
  func recordEntry(_ identity: FileIdentity?, at key: EntryKey) {
    state.withLock { $0.names.insert(EntryRecord(identity: identity), for: key) }
  }

  /// Records a file that the mount has made just now.
  func recordNewFile(_ node: NodeID, _ status: FileStatus) {
    state.withLock { $0.files.insert(FileRecord(state: FileState(status), isSettled: true), for: node) }
  }

  /// Changes a file, or a directory's attributes, and records the state in which the change leaves it.
  /// - Parameters:
  ///   - open: opens what is changed; returns its attributes as well.
  ///   - status: the present attributes.
  /// - Returns: what the body returns, and the attributes after that.
  func changing<Target, Result>(
    _ node: NodeID, isDirectory: Bool = false, _ open: () throws(Errno) -> (Target, FileStatus),
    _ status: (Target) throws(Errno) -> FileStatus, _ body: (Target) throws(Errno) -> Result
  ) throws(Errno) -> (Result, FileStatus) {
    state.withLock { $0.pendingFiles.begin(node) }
    do throws(Errno) {
      let (target, before) = try open()
      let result = try body(target)
      let after = try status(target)
      let record = record(node, from: FileState(before), to: FileState(after))
      // What was passed over may be a change by another program, before ours or after it.
      let passedOver = state.withLock { $0.pendingFiles.end(node) }
      if !passedOver.isEmpty {
        let isAsLeft = FileState(try status(target)) == record.state
        if !isAsLeft || !record.isSettled {
          invalidate(node, isDirectory, leaving: isAsLeft ? record.state : nil)
        }
      }
      return (result, after)
    } catch {
      // What the failed change has done is invalidated.
      state.withLock { _ = $0.pendingFiles.end(node) }
      invalidate(node, isDirectory)
      throw error
    }
  }

  private func record(_ node: NodeID, from before: FileState, to after: FileState) -> FileRecord {
    state.withLock { state in
      let known = state.files.value(for: node)
      let isSettled = known?.state == before && known?.isSettled == true
      let record = FileRecord(state: after, isSettled: isSettled)
      state.files.insert(record, for: node)
      return record
    }
  }

  /// - Parameter fileState: the file's state, if all that led to it was ours or is covered by this invalidation.
  private func invalidate(_ node: NodeID, _ isDirectory: Bool, leaving fileState: FileState? = nil) {
    state.withLock { state in
      if let fileState, state.files.value(for: node)?.state == fileState {
        state.files.insert(FileRecord(state: fileState, isSettled: true), for: node)
      } else {
        _ = state.files.remove(node)
      }
    }
    queue.add(Self.invalidations(of: node, isDirectory))
  }

  private static func invalidations(of node: NodeID, _ isDirectory: Bool) -> [Invalidation] {
    isDirectory
      ? [Invalidation(subject: .parts(node)), Invalidation(subject: .listing(node))]
      : [Invalidation(subject: .file(node), aspects: .content)]
  }

  /// Runs the body, which changes names and records what it leaves there. Their events are passed over meanwhile: they
  /// may come before the record.
  func changing<Result>(
    _ keys: [EntryKey], in store: NodeStore, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    state.withLock { state in
      for key in keys { state.pendingNames.begin(key) }
    }
    defer { for key in keys { end(key, store) } }
    return try body()
  }

  private func end(_ key: EntryKey, _ store: NodeStore) {
    // A file may be copied while another request removes its name: then the last of them looks.
    let passedOver = state.withLock { state in
      let events = state.pendingNames.end(key)
      return state.pendingNames.contains(key) ? [] : events
    }
    if passedOver.isEmpty { return }
    if let part = store.upperPart(of: key.parent), isOurs(passedOver, key, part, store) { return }
    queue.add(Self.invalidations(of: key))
  }

  private static func invalidations(of key: EntryKey) -> [Invalidation] {
    let name = Invalidation.Subject.name(key.parent, key.name, layer: 0)
    return [
      Invalidation(subject: name, aspects: [.entry, .content, .link]),
      Invalidation(subject: .listing(key.parent)),
    ]
  }

  private func isOurs(
    _ events: PassedOverEvents, _ key: EntryKey, _ part: LayerDirectory, _ store: NodeStore
  ) -> Bool {
    causeOfNameEvent(key.name, key.parent, part) == .ours
      && (!events.contains(.file) || causeOfFileEvent(key.name, key.parent, part, store) == .ours)
  }

  /// Records what our change has left at a name of a directory in the upper layer.
  func recordEntry(_ name: CName, in directory: MergedDirectory, at key: EntryKey) {
    do throws(Errno) {
      let attributes = try directory.top.attributes(of: name)
      let record = EntryRecord(
        identity: attributes.identity, mayBeWhiteout: attributes.kind == .characterDevice)
      state.withLock { $0.names.insert(record, for: key) }
    } catch {
      if error == .noSuchFileOrDirectory { recordEntry(nil, at: key) }
    }
  }

  // MARK: - Events

  enum Cause: Equatable {
    case others
    case ours
    /// Our change, but what others did before may not have been handled: these invalidations do that.
    case oursAfterOthers([Invalidation])
  }

  /// What has caused an event of a directory in the upper layer.
  func cause(of event: InotifyEvent, in directory: NodeID, _ store: NodeStore) -> Cause {
    guard let part = store.upperPart(of: directory) else { return .others }
    if !event.mask.isDisjoint(with: .names) { return causeOfNameEvent(event.name, directory, part) }
    if event.name.isEmpty || event.mask.contains(.isDirectory) {
      return event.mask.contains(.attributes)
        ? causeOfDirectoryEvent(event.name, directory, part, store) : .others
    }
    return causeOfFileEvent(event.name, directory, part, store)
  }

  /// - Parameter kind: of the event; one of the file that the name has lost, or one of the name itself.
  private func causeOfNameEvent(
    _ name: [UInt8], _ directory: NodeID, _ part: LayerDirectory, _ kind: PassedOverEvents = .name
  ) -> Cause {
    let key = EntryKey(parent: directory, name: name)
    while true {
      let (isPending, known) = state.withLock {
        ($0.pendingNames.passOver(key, kind), $0.names.value(for: key))
      }
      if isPending { return .ours }
      guard let known else { return .others }
      if Self.has(part, known.identity, at: name) { return .ours }
      // A change of ours may have come between the record and the look.
      if forget(key, unlessChangedFrom: known) { return .others }
    }
  }

  /// What other programs have changed may come back as we have left it, after the kernel has cached something else.
  /// - Returns: false if a change of ours has come.
  private func forget(_ key: EntryKey, unlessChangedFrom known: EntryRecord) -> Bool {
    state.withLock { state in
      if state.pendingNames.contains(key) || state.names.value(for: key) != known { return false }
      _ = state.names.remove(key)
      return true
    }
  }

  /// Compares what a lookup answers with what our last change of the name has left: if another program has changed it,
  /// and changes it back before its events are read, they have nothing to tell.
  func recordLookup(_ found: Entry?, at key: EntryKey) {
    let isChanged = state.withLock { state in
      guard let known = state.names.value(for: key), !known.mayBeWhiteout,
        known.identity != found?.upperIdentity, !state.pendingNames.contains(key)
      else { return false }
      _ = state.names.remove(key)
      return true
    }
    if isChanged { queue.add(Self.invalidations(of: key)) }
  }

  /// Whether the upper layer has an entry at a name.
  /// - Parameter identity: nil for none.
  private static func has(_ part: LayerDirectory, _ identity: FileIdentity?, at name: [UInt8]) -> Bool {
    do throws(Errno) {
      return try withCName(name) { name throws(Errno) in try part.attributes(of: name) }.identity == identity
    } catch {
      return error == .noSuchFileOrDirectory && identity == nil
    }
  }

  /// - Parameter mayLookAgain: whether to look again if a change of ours may have come after the first look.
  private func causeOfFileEvent(
    _ name: [UInt8], _ directory: NodeID, _ part: LayerDirectory, _ store: NodeStore,
    mayLookAgain: Bool = true
  ) -> Cause {
    let key = EntryKey(parent: directory, name: name)
    let look = { try? withCName(name) { name throws(Errno) in try part.attributes(of: name) } }
    guard let present = look(), let node = store.file(present.identity, layer: 0, named: key) else {
      // We may have taken the name away since.
      return causeOfNameEvent(name, directory, part, .file)
    }
    let cause = cause(of: node, isDirectory: false, present)
    guard cause == .others, mayLookAgain, look().map(FileState.init) != FileState(present) else {
      return cause
    }
    return causeOfFileEvent(name, directory, part, store, mayLookAgain: false)
  }

  /// - Parameter name: empty for the directory itself.
  private func causeOfDirectoryEvent(
    _ name: [UInt8], _ directory: NodeID, _ part: LayerDirectory, _ store: NodeStore
  ) -> Cause {
    let node = name.isEmpty ? directory : store.directory(named: name, in: directory)
    guard let node, let part = name.isEmpty ? part : store.upperPart(of: node),
      let present = try? part.attributes()
    else { return .others }
    let cause = cause(of: node, isDirectory: true, present)
    // A change of ours may have come after the look.
    guard cause == .others, let next = try? part.attributes(), FileState(next) != FileState(present) else {
      return cause
    }
    return self.cause(of: node, isDirectory: true, next)
  }

  private func cause(of node: NodeID, isDirectory: Bool, _ present: FileStatus) -> Cause {
    state.withLock { state in
      if state.pendingFiles.passOver(node, .file) { return .ours }
      guard let known = state.files.value(for: node), known.state == FileState(present) else {
        return .others
      }
      if known.isSettled { return .ours }
      // All is invalidated now, whatever came before.
      state.files.insert(FileRecord(state: known.state, isSettled: true), for: node)
      return .oursAfterOthers(Self.invalidations(of: node, isDirectory))
    }
  }
}

/// Events that have come while their subject was being changed.
private struct PassedOverEvents: OptionSet {
  let rawValue: UInt8
  static let name = Self(rawValue: 1)
  static let file = Self(rawValue: 2)
}

/// What is being changed, and which events of it have been passed over meanwhile.
private struct PendingChanges<Key: Hashable> {
  private var changes: [Key: (count: Int, events: PassedOverEvents)] = [:]

  func contains(_ key: Key) -> Bool { changes[key] != nil }

  mutating func begin(_ key: Key) { changes[key, default: (0, [])].count += 1 }

  /// - Returns: the events that have been passed over.
  mutating func end(_ key: Key) -> PassedOverEvents {
    guard let change = changes[key] else { return [] }
    changes[key] = change.count > 1 ? (change.count - 1, change.events) : nil
    return change.events
  }

  /// Passes an event over if its subject is being changed.
  /// - Returns: whether it is.
  mutating func passOver(_ key: Key, _ event: PassedOverEvents) -> Bool {
    changes[key]?.events.insert(event)
    return changes[key] != nil
  }
}
