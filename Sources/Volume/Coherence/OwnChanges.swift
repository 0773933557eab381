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
/// change times (multigrain timestamps, Linux 6.13). What they write between that look and the one after our change is
/// found by their closing the file: we know how often we do.
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
    /// How many `IN_CLOSE_WRITE` events of our own descriptors are to come.
    var closes = 0
    /// Whether the kernel knows other times than our last change has left: the reply to WRITE has none.
    var hasOldTimes = false
  }

  /// What a name has in the upper layer.
  private struct EntryRecord: Equatable {
    /// nil for nothing.
    let identity: FileIdentity?
    /// A lookup does not find it.
    var mayBeWhiteout = false
    /// The most events of our changes that are to come. Those of other programs have come beyond them, even if they leave
    /// what was there before.
    var events: Int
  }

  private struct State {
    var names = LRUCache<EntryKey, EntryRecord>(countLimit: OwnChanges.limit)
    var files = LRUCache<NodeID, FileRecord>(countLimit: OwnChanges.limit)
    var pendingNames = PendingChanges<EntryKey>()
    var pendingFiles = PendingChanges<NodeID>()

    /// Takes events of a name for those of our changes.
    /// - Returns: what our last change has left there; nil if there are more events than our changes cause.
    mutating func take(_ events: Int, of key: EntryKey) -> EntryRecord? {
      guard var record = names.value(for: key) else { return nil }
      if events == 0 { return record }
      guard record.events >= events else {
        _ = names.remove(key)
        return nil
      }
      record.events -= events
      names.insert(record, for: key)
      return record
    }
  }

  /// The most names and the most files that are kept. The events of others are handled as those of other programs.
  private static let limit = 32768

  private let state = Locked(State())
  private let queue: InvalidationQueue

  init(_ queue: InvalidationQueue) { self.queue = queue }

  // MARK: - Changes

  /// Records what our change has left at a name.
  /// - Parameters:
  ///   - identity: nil for nothing.
  ///   - events: the most events of the name that the change causes.
  func recordEntry(
    _ identity: FileIdentity?, mayBeWhiteout: Bool = false, at key: EntryKey, events: Int
  ) {
    state.withLock { state in
      let former = state.names.value(for: key)?.events ?? 0
      let record = EntryRecord(
        identity: identity, mayBeWhiteout: mayBeWhiteout, events: former + events)
      state.names.insert(record, for: key)
    }
  }

  /// Records what the kernel takes a name for after our change. If the layer has something else there, its event is handled
  /// as one of another program.
  /// - Parameter identity: nil if it is not certain.
  func recordKnownEntry(_ identity: FileIdentity?, at key: EntryKey, events: Int) {
    if let identity { return recordEntry(identity, at: key, events: events) }
    state.withLock { _ = $0.names.remove(key) }
  }

  /// Records a file that the mount has made just now.
  func recordNewFile(_ node: NodeID, _ status: FileStatus) {
    state.withLock { $0.files.insert(FileRecord(state: FileState(status), isSettled: true), for: node) }
  }

  /// Whether a file is as our last change has left it, and all that happened before has been handled.
  func isSettled(_ node: NodeID, as present: FileStatus) -> Bool {
    state.withLock { state in
      guard let known = state.files.value(for: node) else { return false }
      return known.isSettled && known.state == FileState(present)
    }
  }

  /// Records the state of a file whose change time a rename has set.
  func recordChangeTime(of node: NodeID, _ status: FileStatus) {
    state.withLock { state in
      guard var record = state.files.value(for: node) else { return }
      record.state = FileState(status)
      state.files.insert(record, for: node)
    }
  }

  /// Records that a descriptor with which the mount has written to a file is about to be closed.
  func willClose(_ node: NodeID) {
    state.withLock { state in
      guard var record = state.files.value(for: node) else { return }
      record.closes += 1
      state.files.insert(record, for: node)
    }
  }

  /// What the kernel knows of a file's times once a change is replied to.
  enum KnownTimes {
    /// Those before the change.
    case old
    /// Those after it.
    case new
    /// What it knew before.
    case same
  }

  /// Whether a file is as our last change left it, and the kernel knows other times.
  func hasOldTimes(of node: NodeID, as present: FileStatus) -> Bool {
    state.withLock { state in
      guard let known = state.files.value(for: node) else { return false }
      return known.hasOldTimes && known.isSettled && known.state == FileState(present)
    }
  }

  /// Records that the kernel knows a file's times, or is to learn them by the next GETATTR.
  /// - Parameter status: what the kernel was told; nil whatever it was.
  func recordTimes(of node: NodeID, as status: FileStatus? = nil) {
    state.withLock { state in
      guard var record = state.files.value(for: node) else { return }
      if let status, record.state != FileState(status) { return }
      record.hasOldTimes = false
      state.files.insert(record, for: node)
    }
  }

  /// Changes a file, or a directory's attributes, and records the state in which the change leaves it.
  /// - Parameters:
  ///   - times: what the kernel knows then.
  ///   - open: opens what is changed; returns its attributes as well.
  ///   - status: the present attributes.
  /// - Returns: what the body returns, and the attributes after that.
  func changing<Target, Result>(
    _ node: NodeID, isDirectory: Bool = false, times: KnownTimes = .same,
    _ open: () throws(Errno) -> (Target, FileStatus),
    _ status: (Target) throws(Errno) -> FileStatus, _ body: (Target) throws(Errno) -> Result
  ) throws(Errno) -> (Result, FileStatus) {
    state.withLock { $0.pendingFiles.begin(node) }
    do throws(Errno) {
      let (target, before) = try open()
      let result = try body(target)
      let after = try status(target)
      let record = record(node, from: FileState(before), to: FileState(after), times)
      // What was passed over may be a change by another program, before ours or after it.
      let passedOver = state.withLock { $0.pendingFiles.end(node) }
      if !passedOver.isEmpty {
        let isAsLeft = FileState(try status(target)) == record.state
        // Two closings may have been one event.
        if !isAsLeft || !record.isSettled || passedOver.ofClosing {
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

  private func record(
    _ node: NodeID, from before: FileState, to after: FileState, _ times: KnownTimes
  ) -> FileRecord {
    state.withLock { state in
      let known = state.files.value(for: node)
      let isSettled = known?.state == before && known?.isSettled == true
      let hasOldTimes =
        switch times {
        case .old: true
        case .new: false
        case .same: known?.hasOldTimes ?? false
        }
      let record = FileRecord(
        state: after, isSettled: isSettled, closes: known?.closes ?? 0, hasOldTimes: hasOldTimes)
      state.files.insert(record, for: node)
      return record
    }
  }

  /// - Parameter fileState: the file's state, if all that led to it was ours or is covered by this invalidation.
  private func invalidate(_ node: NodeID, _ isDirectory: Bool, leaving fileState: FileState? = nil) {
    state.withLock { state in
      if let fileState, var record = state.files.value(for: node), record.state == fileState {
        record.isSettled = true
        state.files.insert(record, for: node)
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
    let (passedOver, areOurs) = state.withLock { state -> (PassedOverEvents, Bool) in
      let events = state.pendingNames.end(key)
      if state.pendingNames.contains(key) { return (PassedOverEvents(), true) }
      return (events, events.names == 0 || state.take(events.names, of: key) != nil)
    }
    if passedOver.isEmpty { return }
    if areOurs, let part = store.upperPart(of: key.parent), isOurs(passedOver, key, part, store) { return }
    queue.add(Self.invalidations(of: key))
  }

  /// The invalidations of a name that may stand for something else than the kernel takes it for.
  static func invalidations(of key: EntryKey) -> [Invalidation] {
    let name = Invalidation.Subject.name(key.parent, key.name, layer: 0)
    return [
      Invalidation(subject: name, aspects: [.entry, .content, .link]),
      Invalidation(subject: .listing(key.parent)),
    ]
  }

  private func isOurs(
    _ events: PassedOverEvents, _ key: EntryKey, _ part: LayerDirectory, _ store: NodeStore
  ) -> Bool {
    causeOfNameEvent(key.name, key.parent, part, .file) == .ours
      && (!events.ofFile || causeOfFileEvent(key.name, key.parent, part, store) == .ours)
  }

  /// Records what our change has left at a name of a directory in the upper layer.
  func recordEntry(_ name: CName, in directory: MergedDirectory, at key: EntryKey, events: Int) {
    do throws(Errno) {
      let attributes = try directory.top.attributes(of: name)
      recordEntry(
        attributes.identity, mayBeWhiteout: attributes.kind == .characterDevice, at: key, events: events)
    } catch {
      if error == .noSuchFileOrDirectory { recordEntry(nil, at: key, events: events) }
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
    return causeOfFileEvent(
      event.name, directory, part, store, event.mask.contains(.closeWrite) ? .closing : .file)
  }

  /// - Parameter kind: of the event; one of the file that the name has lost, or one of the name itself.
  private func causeOfNameEvent(
    _ name: [UInt8], _ directory: NodeID, _ part: LayerDirectory, _ kind: EventKind = .name
  ) -> Cause {
    let key = EntryKey(parent: directory, name: name)
    var events = kind == .name ? 1 : 0
    while true {
      let (isPending, known) = state.withLock { state in
        state.pendingNames.passOver(key, kind) ? (true, nil) : (false, state.take(events, of: key))
      }
      if isPending { return .ours }
      guard let known else { return .others }
      events = 0
      if Self.has(part, known.identity, at: name) { return .ours }
      // A change of ours may have come between the record and the look.
      if forget(key, unlessChangedFrom: known) { return .others }
    }
  }

  /// What other programs have changed may come back as we have left it, after the kernel has cached something else.
  /// - Returns: false if a change of ours has come.
  private func forget(_ key: EntryKey, unlessChangedFrom known: EntryRecord) -> Bool {
    state.withLock { state in
      if state.pendingNames.contains(key) { return false }
      if let present = state.names.value(for: key), present != known { return false }
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
    _ kind: EventKind = .file, mayLookAgain: Bool = true
  ) -> Cause {
    let key = EntryKey(parent: directory, name: name)
    let look = { try? withCName(name) { name throws(Errno) in try part.attributes(of: name) } }
    guard let present = look(), let node = store.file(present.identity, layer: 0, named: key) else {
      // We may have taken the name away since.
      return causeOfNameEvent(name, directory, part, .file)
    }
    let cause = cause(of: node, isDirectory: false, present, kind)
    guard cause == .others, mayLookAgain, look().map(FileState.init) != FileState(present) else {
      return cause
    }
    return causeOfFileEvent(name, directory, part, store, .file, mayLookAgain: false)
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

  private func cause(
    of node: NodeID, isDirectory: Bool, _ present: FileStatus, _ kind: EventKind = .file
  ) -> Cause {
    state.withLock { state in
      let isPending = state.pendingFiles.passOver(node, kind)
      guard var known = state.files.value(for: node) else { return isPending ? .ours : .others }
      // Not our descriptor: the file was open for writing elsewhere.
      let isForeign = kind == .closing && known.closes == 0
      if kind == .closing, known.closes > 0 {
        known.closes -= 1
        state.files.insert(known, for: node)
      }
      if isPending { return .ours }
      guard known.state == FileState(present) else { return .others }
      if known.isSettled, !isForeign { return .ours }
      // All is invalidated now, whatever came before.
      known.isSettled = true
      state.files.insert(known, for: node)
      return .oursAfterOthers(Self.invalidations(of: node, isDirectory))
    }
  }
}
