import Fuse
import Glibc
import Layers
import Posix

/// Changes that are asked for through the mount: only those that the announcer makes are granted, since they have
/// been made already.
extension Volume {
  /// Set in the numbers of nodes that stand for what is gone, and in no other's.
  private static let tombstones: UInt64 = 3 << 62

  /// Answers a LOOKUP that belongs to a replay.
  func send(_ answer: ExpectedRequest.LookupReply, _ reply: consuming Reply<ReplyKind.Entry>) {
    switch answer {
    case .absent: reply.fail(.noSuchFileOrDirectory)
    case .tombstone(let isDirectory): _ = reply.send(tombstone(isDirectory: isDirectory))
    case .node(let place): send(entryAt: place, nil, reply)
    }
  }

  /// An entry that the kernel may remove. It is valid for no time at all, so that nobody else comes to see it, and
  /// has a number of its own, since the kernel may still have the one before.
  private func tombstone(isDirectory: Bool) -> EntryReply {
    let number =
      Self.tombstones
      | tombstoneCount.withLock { count in
        count = (count + 1) & (1 << 62 - 1)
        return count
      }
    let now = TimeSpec.now
    let attributes =
      isDirectory
      ? FileStatus(directory: 0o700, owner: geteuid(), group: getegid(), modified: now, changed: now)
      : FileStatus(regularFile: 0o600, owner: geteuid(), group: getegid(), size: 0, modified: now)
    return EntryReply(
      node: NodeID(rawValue: number), attributes: NodeAttributes(attributes, inodeNumber: number, timeout: 0),
      timeout: 0)
  }

  /// Pays with what has a name now.
  /// - Parameter kind: what it must be; nil for a file that is about to be found by another name than this, for
  ///   which the answer is then not kept.
  private func send(entryAt place: EntryKey, _ kind: FileKind?, _ reply: consuming Reply<ReplyKind.Entry>) {
    var entry: EntryReply
    do throws(Errno) {
      let merged = try merged(of: place.parent)
      entry = try withCName(place.name) { name throws(Errno) in
        guard let found = try merged.lookup(name), kind == nil || found.kind == kind else {
          throw .noSuchFileOrDirectory
        }
        return try answer(found, name, in: place.parent, merged)
      }
    } catch {
      announcer?.expectation.revoke()
      reply.fail(error)
      return
    }
    // The kernel takes the attributes that come with a new entry as they are, also if they were taken back
    // meanwhile.
    entry.attributes.timeout = 0
    if kind == nil { entry.timeout = 0 }
    if !reply.send(entry) {
      announcer?.expectation.revoke()
      forget(entry.node, lookups: 1)
    }
  }

  // MARK: - Requests

  public func make(
    _ entry: NewEntryKind, _ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>
  ) {
    let place = EntryKey(parent: parent, name)
    guard let expectation = expectation(of: reply.caller), let kind = expectation.consume(entry, at: place)
    else { return reply.fail(.readOnlyFileSystem) }
    send(entryAt: place, kind, reply)
  }

  public func remove(
    _ name: CName, isDirectory: Bool, from parent: NodeID, reply: consuming Reply<ReplyKind.Status>
  ) {
    let replay = SyntheticChange.disappearance(EntryKey(parent: parent, name), isDirectory: isDirectory)
    send(if: replay, reply)
  }

  public func rename(
    _ name: CName, in parent: NodeID, to newName: CName, in newParent: NodeID,
    reply: consuming Reply<ReplyKind.Status>
  ) {
    send(if: .renaming(EntryKey(parent: parent, name), to: EntryKey(parent: newParent, newName)), reply)
  }

  public func setAttributes(
    of node: NodeID, changesPermissions: Bool, reply: consuming Reply<ReplyKind.Attributes>
  ) {
    // The shell cuts what it is about to write to; the control file does not mind.
    if node == ControlFile.node, !changesPermissions { return reply.send(control.attributes) }
    guard !changesPermissions, let expectation = expectation(of: reply.caller),
      let number = table.withLock({ table in (try? table.slot(of: node)).map { table[$0].inodeNumber } }),
      expectation.consume(.touch(number))
    else { return reply.fail(.readOnlyFileSystem) }
    guard var attributes = try? attributes(of: node) else {
      // It was replaced a moment ago, of which there will be news.
      expectation.revoke()
      return reply.fail(.noSuchFileOrDirectory)
    }
    // As those of a new entry.
    attributes.timeout = 0
    reply.send(attributes)
  }

  private func send(if replay: SyntheticChange, _ reply: consuming Reply<ReplyKind.Status>) {
    guard let expectation = expectation(of: reply.caller), expectation.consume(replay) else {
      return reply.fail(.readOnlyFileSystem)
    }
    reply.send()
  }

  /// What is expected of a requester; nil unless it is the announcer.
  func expectation(of caller: Caller) -> ExpectedRequest? {
    guard let expectation = announcer?.expectation, expectation.isOwn(caller) else { return nil }
    return expectation
  }
}

extension Entry {
  fileprivate var kind: FileKind? {
    switch self {
    case .directory: .directory
    case .file(_, let attributes): attributes.kind
    }
  }
}

extension EntryKey {
  init(parent: NodeID, _ name: CName) {
    self.init(parent: parent, name: [UInt8](bytesOf: name))
  }
}
