import Containers
import Fuse
import Layers
import Posix

/// Which events the mount's own changes have caused.
extension OwnChanges {
  enum Cause: Equatable {
    case others
    case ours
    /// Our change, but what others did before may not have been handled: these invalidations do that.
    case oursAfterOthers([Invalidation])
    /// A program has the file open to write to it directly. These invalidations are all that others could need: the kernel
    /// has no page of it.
    case direct([Invalidation])
  }

  /// Counts an event of a directory in the upper layer as one of those that our changes cause, if it is one: to be called
  /// once for each event and directory.
  /// - Returns: what has caused it.
  func consume(_ event: InotifyEvent, in directory: NodeID, _ store: NodeStore) -> Cause {
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
  func causeOfNameEvent(
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

  /// Forgets the state in which the mount has left a name, since another program has changed it. That program may restore
  /// this state after the kernel has cached another one, and the event must count then.
  /// - Returns: false if the mount has changed the name meanwhile.
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

  func isChanging(_ key: EntryKey) -> Bool { state.withLock { $0.pendingNames.contains(key) } }

  /// Compares what the upper layer has in a spelling that was looked up, as `recordLookup`.
  func recordSpelling(at key: EntryKey, in part: LayerDirectory) {
    let known = state.withLock { $0.pendingNames.contains(key) ? nil : $0.names.value(for: key) }
    guard let known, !Self.has(part, known.identity, at: key.name) else { return }
    if forget(key, unlessChangedFrom: known) { queue.add(Self.invalidations(of: key)) }
  }

  /// Whether the upper layer has an entry at a name, in this spelling.
  /// - Parameter identity: nil for none.
  private static func has(_ part: LayerDirectory, _ identity: FileIdentity?, at name: [UInt8]) -> Bool {
    do throws(Errno) {
      return try withCName(name) { name throws(Errno) in try part.attributesExact(of: name) }.identity
        == identity
    } catch {
      return error == .noSuchFileOrDirectory && identity == nil
    }
  }

  /// Records the state in which a program leaves a file to which it has written directly.
  /// - Parameter isReported: whether the event of its closing has come.
  func recordDirectWrites(to node: NodeID, _ status: FileStatus, isReported: Bool) {
    state.withLock { state in
      let closes = (state.files.value(for: node)?.closes ?? 0) + (isReported ? 0 : 1)
      state.files.insert(FileRecord(state: FileState(status), isSettled: true, closes: closes), for: node)
    }
  }

  /// - Parameter mayLookAgain: whether to look again if a change of ours may have come after the first look.
  func causeOfFileEvent(
    _ name: [UInt8], _ directory: NodeID, _ part: LayerDirectory, _ store: NodeStore,
    _ kind: EventKind = .file, mayLookAgain: Bool = true
  ) -> Cause {
    let key = EntryKey(parent: directory, name: name)
    let look = { try? withCName(name) { name throws(Errno) in try part.attributes(of: name) } }
    guard let present = look(), let node = store.file(present.identity, layer: 0, named: key) else {
      // We may have taken the name away since.
      return causeOfNameEvent(name, directory, part, .file)
    }
    if store.recordDirectEvent(of: node, isClosing: kind == .closing) {
      store.recordAttributeChange(of: node)
      return .direct([Invalidation(subject: .file(node), aspects: .attributes)])
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
