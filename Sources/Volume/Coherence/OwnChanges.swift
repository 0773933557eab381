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
final class OwnChanges: Sendable {
  /// What is compared: everything that another program changes shows in one of them.
  private struct FileState: Equatable {
    let identity: FileIdentity
    let size: UInt64
    let changed: TimeSpec

    init(_ status: FileStatus) {
      (identity, size, changed) = (status.identity, status.size, status.changed)
    }
  }

  private struct FileRecord {
    var state: FileState
    /// Whether all events of what happened before the first of our changes have been read.
    var isSettled: Bool
  }

  private struct State {
    /// The entry that a name has in the upper layer; `.none` for none.
    var names = LRUCache<EntryKey, FileIdentity?>(countLimit: OwnChanges.limit)
    var files = LRUCache<NodeID, FileRecord>(countLimit: OwnChanges.limit)
    /// What is being changed, and whether an event of it has come meanwhile.
    var pendingNames: [EntryKey: (count: Int, hasEvent: Bool)] = [:]
    var pendingFiles: [NodeID: (count: Int, hasEvent: Bool)] = [:]
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
    state.withLock { $0.names.insert(identity, for: key) }
  }

  /// Records a file that the mount has made just now.
  func recordNewFile(_ node: NodeID, _ status: FileStatus) {
    state.withLock { $0.files.insert(FileRecord(state: FileState(status), isSettled: true), for: node) }
  }

  /// Changes a file, and records the state in which the change leaves it.
  /// - Parameter status: the file's present attributes.
  func changing<Result>(
    _ node: NodeID, _ status: () throws(Errno) -> FileStatus, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    begin(node)
    do throws(Errno) {
      let before = FileState(try status())
      let result = try body()
      let after = FileState(try status())
      state.withLock { state in
        let known = state.files.value(for: node)
        let isSettled = known?.state == before && known?.isSettled == true
        state.files.insert(FileRecord(state: after, isSettled: isSettled), for: node)
      }
      if end(node), FileState(try status()) != after { invalidate(node) }
      return result
    } catch {
      // What the failed change has done is invalidated.
      _ = end(node)
      invalidate(node)
      throw error
    }
  }

  private func begin(_ node: NodeID) {
    state.withLock { state in
      let pending = state.pendingFiles[node] ?? (0, false)
      state.pendingFiles[node] = (pending.count + 1, pending.hasEvent)
    }
  }

  /// - Returns: whether an event has been passed over.
  private func end(_ node: NodeID) -> Bool {
    state.withLock { state in
      guard let pending = state.pendingFiles[node] else { return false }
      state.pendingFiles[node] = pending.count > 1 ? (pending.count - 1, pending.hasEvent) : nil
      return pending.hasEvent
    }
  }

  private func invalidate(_ node: NodeID) {
    state.withLock { _ = $0.files.remove(node) }
    queue.add([Invalidation(subject: .file(node), aspects: .content)])
  }

  /// Runs the body, which changes names and records what it leaves there. Their events are passed over meanwhile: they
  /// may come before the record.
  func changing<Result>(
    _ keys: [EntryKey], in store: NodeStore, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    state.withLock { state in
      for key in keys { state.pendingNames[key, default: (0, false)].count += 1 }
    }
    defer { for key in keys { end(key, store) } }
    return try body()
  }

  private func end(_ key: EntryKey, _ store: NodeStore) {
    let hasEvent = state.withLock { state -> Bool in
      guard let pending = state.pendingNames[key] else { return false }
      // A file is copied while another request removes its name.
      state.pendingNames[key] = pending.count > 1 ? (pending.count - 1, pending.hasEvent) : nil
      return pending.count == 1 && pending.hasEvent
    }
    guard hasEvent else { return }
    if let part = store.upperPart(of: key.parent), causeOfNameEvent(key.name, key.parent, part) == .ours {
      return
    }
    let name = Invalidation.Subject.name(key.parent, key.name, layer: 0)
    queue.add([
      Invalidation(subject: name, aspects: [.entry, .content, .link]),
      Invalidation(subject: .listing(key.parent)),
    ])
  }

  /// Records what our change has left at a name of a directory in the upper layer.
  func recordEntry(_ name: CName, in directory: MergedDirectory, at key: EntryKey) {
    do throws(Errno) {
      recordEntry(try directory.top.attributes(of: name).identity, at: key)
    } catch {
      if error == .noSuchFileOrDirectory { recordEntry(nil, at: key) }
    }
  }

  // MARK: - Events

  enum Cause: Equatable {
    case others
    case ours
    /// Our change, but what others did before may not have been handled.
    case oursAfterOthers(NodeID)
  }

  /// What has caused an event of a directory in the upper layer.
  func cause(of event: InotifyEvent, in directory: NodeID, _ store: NodeStore) -> Cause {
    guard !event.name.isEmpty, let part = store.upperPart(of: directory) else { return .others }
    if !event.mask.isDisjoint(with: .names) { return causeOfNameEvent(event.name, directory, part) }
    if event.mask.contains(.isDirectory) { return .others }
    return causeOfFileEvent(event.name, directory, part, store)
  }

  private func causeOfNameEvent(_ name: [UInt8], _ directory: NodeID, _ part: LayerDirectory) -> Cause {
    let key = EntryKey(parent: directory, name: name)
    let isPending = state.withLock { state in
      if state.pendingNames[key] == nil { return false }
      state.pendingNames[key]?.hasEvent = true
      return true
    }
    if isPending { return .ours }
    return isAsLeft(key, part) ? .ours : .others
  }

  /// Whether the upper layer has at a name what our last change of the name has left there.
  private func isAsLeft(_ key: EntryKey, _ part: LayerDirectory) -> Bool {
    guard let known = state.withLock({ $0.names.value(for: key) }) else { return false }
    do throws(Errno) {
      return try withCName(key.name) { name throws(Errno) in try part.attributes(of: name) }.identity == known
    } catch {
      return error == .noSuchFileOrDirectory && known == nil
    }
  }

  private func causeOfFileEvent(
    _ name: [UInt8], _ directory: NodeID, _ part: LayerDirectory, _ store: NodeStore
  ) -> Cause {
    let key = EntryKey(parent: directory, name: name)
    guard let present = try? withCName(name, { name throws(Errno) in try part.attributes(of: name) }),
      let node = store.file(present.identity, layer: 0, named: key)
    else {
      // We may have taken the name away since.
      return isAsLeft(key, part) ? .ours : .others
    }
    return state.withLock { state in
      if state.pendingFiles[node] != nil {
        state.pendingFiles[node]?.hasEvent = true
        return .ours
      }
      guard let known = state.files.value(for: node), known.state == FileState(present) else {
        return .others
      }
      if known.isSettled { return .ours }
      // The content is invalidated now, whatever came before.
      state.files.insert(FileRecord(state: known.state, isSettled: true), for: node)
      return .oursAfterOthers(node)
    }
  }
}
