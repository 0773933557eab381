import Containers
import Fuse
import Layers
import Posix

/// Distinguishes the events that the mount's own changes cause in the upper layer from those of other programs. The kernel
/// has applied the mount's own changes to its caches already, and has notified the programs that watch the mount.
///
/// An event does not name the process that caused it. So each of the mount's changes records the state in which it leaves
/// the entry, and an event is dropped if the entry is in that state. The state of a file is read before each change as well,
/// which shows the changes of other programs until then. This needs a file system that gives two changes different change
/// times if the state was read in between (multigrain timestamps, Linux 6.13). A write of another program between the two
/// readings shows by its IN_CLOSE_WRITE: the number of the mount's own closings is known.
final class OwnChanges: LookupObserver {
  /// What is compared: everything that another program changes shows in one of them.
  struct FileState: Equatable {
    let identity: FileIdentity
    let size: UInt64
    let changed: TimeSpec

    init(_ status: FileStatus) {
      (identity, size, changed) = (status.identity, status.size, status.changed)
    }
  }

  /// A file, or a directory's attributes.
  struct FileRecord {
    var state: FileState
    /// Whether all events of what happened before the first of our changes have been read.
    var isSettled: Bool
    /// How many `IN_CLOSE_WRITE` events of our own descriptors are to come.
    var closes = 0
    /// Whether the kernel knows other times than our last change has left: the reply to WRITE has none.
    var hasOldTimes = false
  }

  /// What a name has in the upper layer.
  struct EntryRecord: Equatable {
    /// nil for nothing.
    let identity: FileIdentity?
    /// A lookup does not find it.
    var mayBeWhiteout = false
    /// The most events of our changes that are to come. Those of other programs have come beyond them, even if they leave
    /// what was there before.
    var events: Int
  }

  /// Invariants: no record expects a negative number of events; what may be a whiteout is there; what is pending is being
  /// changed by at least one thread.
  struct State {
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
  static let limit = 32_768

  let state = Locked(State())
  let queue: InvalidationQueue

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
  /// - Parameter status: what the reply to the kernel said; nil whatever it was.
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

  static func invalidations(of node: NodeID, _ isDirectory: Bool) -> [Invalidation] {
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

  /// The invalidations of a name for which the kernel may have cached another file.
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
      let attributes = try directory.top.attributesExact(of: name)
      recordEntry(
        attributes.identity, mayBeWhiteout: attributes.kind == .characterDevice, at: key, events: events)
    } catch {
      if error == .noSuchFileOrDirectory { recordEntry(nil, at: key, events: events) }
    }
  }
}

extension OwnChanges.State: InvariantChecking {
  /// Of the records only the last one is checked: the one that may have changed.
  func brokenInvariant() -> String? {
    if let entry = names.newest {
      if entry.events < 0 { return "\(entry.events) events of a name are to come" }
      if entry.mayBeWhiteout, entry.identity == nil { return "a whiteout that is not there" }
    }
    if let file = files.newest, file.closes < 0 { return "\(file.closes) closings of a file are to come" }
    return pendingNames.isConsistent && pendingFiles.isConsistent ? nil : "a change by no thread is pending"
  }
}
