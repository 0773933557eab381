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
  }

  /// The most names and the most files that are kept. The events of others are handled as those of other programs.
  private static let limit = 4096

  private let state = Locked(State())

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
    let before = FileState(try status())
    let result = try body()
    let after = FileState(try status())
    state.withLock { state in
      let known = state.files.value(for: node)
      let isSettled = known?.state == before && known?.isSettled == true
      state.files.insert(FileRecord(state: after, isSettled: isSettled), for: node)
    }
    return result
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

  enum Cause {
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
    guard let known = state.withLock({ $0.names.value(for: key) }) else { return .others }
    let present: FileIdentity?
    do throws(Errno) {
      present = try withCName(name) { name throws(Errno) in try part.attributes(of: name) }.identity
    } catch {
      guard error == .noSuchFileOrDirectory else { return .others }
      present = nil
    }
    return present == known ? .ours : .others
  }

  private func causeOfFileEvent(
    _ name: [UInt8], _ directory: NodeID, _ part: LayerDirectory, _ store: NodeStore
  ) -> Cause {
    guard let present = try? withCName(name, { name throws(Errno) in try part.attributes(of: name) }),
      let node = store.file(present.identity, layer: 0, named: EntryKey(parent: directory, name: name))
    else { return .others }
    return state.withLock { state in
      guard let known = state.files.value(for: node), known.state == FileState(present) else { return .others }
      if known.isSettled { return .ours }
      // The content is invalidated now, whatever came before.
      state.files.insert(FileRecord(state: known.state, isSettled: true), for: node)
      return .oursAfterOthers(node)
    }
  }
}
