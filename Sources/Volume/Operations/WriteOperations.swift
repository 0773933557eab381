import Fuse
import Glibc
import Layers
import Posix

/// Requests that change something. The announcer's are granted, since its changes have been made in a layer already. All
/// others are for the writer, or get EROFS.
struct WriteOperations: Sendable {
  let store: NodeStore
  let control: ControlFile
  /// nil for a read-only mount.
  let writer: Writer?
  /// nil with `announce=off`.
  let expected: ExpectedRequest?
  private let tombstones = Locked<UInt64>(0)

  /// The request that is expected of a caller; nil unless it is the announcer.
  private func expected(of caller: Caller) -> ExpectedRequest? {
    guard let expected, expected.isOwn(caller) else { return nil }
    return expected
  }

  // MARK: - LOOKUP

  /// Whether a LOOKUP is the announcer's own. Its replies leave names expired: where the announcer takes one after a further
  /// change has expired the name, the former file would have it again (`Invalidator.dropFiles`).
  func isAnnouncer(_ caller: Caller) -> Bool { expected(of: caller) != nil }

  /// How a LOOKUP by the announcer is answered; nil: like any other.
  func answer(toLookup name: CName, in parent: NodeID, by caller: Caller) -> ExpectedRequest.LookupReply? {
    expected(of: caller)?.reply(toLookup: EntryKey(parent: parent, name))
  }

  func send(_ answer: ExpectedRequest.LookupReply, _ reply: consuming Reply<ReplyKind.Entry>) {
    switch answer {
    case .absent: reply.fail(.noSuchFileOrDirectory)
    case .tombstone(let isDirectory): _ = reply.send(tombstone(isDirectory: isDirectory))
    case .node(let key): send(entryAt: key, nil, reply)
    }
  }

  /// Set in the numbers of tombstone nodes and in no other's.
  private static let tombstoneMark: UInt64 = 3 << 62

  /// An entry that the kernel may remove. It is valid for no time, so that no other program sees it, and has a new
  /// number, since the kernel may still have the one before.
  private func tombstone(isDirectory: Bool) -> EntryReply {
    let number =
      Self.tombstoneMark
      | tombstones.withLock { count in
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

  /// Replies with what has a name now.
  /// - Parameter kind: what it must be; nil for a file that is about to be renamed to this name, whose entry the
  ///   kernel must not cache under the old one.
  private func send(entryAt key: EntryKey, _ kind: FileKind?, _ reply: consuming Reply<ReplyKind.Entry>) {
    var entry: EntryReply
    do throws(Errno) {
      let merged = try store.merged(of: key.parent)
      entry = try withCName(key.name) { name throws(Errno) in
        guard let found = try merged.lookup(name), kind == nil || found.kind == kind else {
          throw .noSuchFileOrDirectory
        }
        store.recordLookup(found, name, in: key.parent)
        return try store.entry(found, name, in: key.parent, merged)
      }
    } catch {
      expected?.revoke()
      return reply.fail(error)
    }
    // The kernel takes the attributes of a new entry even if they were invalidated meanwhile.
    entry.attributes.timeout = 0
    if kind == nil { entry.timeout = 0 }
    if !reply.send(entry) {
      expected?.revoke()
      store.forget(entry.node, lookups: 1)
    }
  }

  // MARK: - Changes

  func make(
    _ entry: NewEntry, _ name: CName, in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>
  ) {
    if let expected = expected(of: reply.caller) {
      let key = EntryKey(parent: parent, name)
      guard let kind = expected.consume(entry.kind, at: key) else { return reply.fail(.readOnlyFileSystem) }
      return send(entryAt: key, kind, reply)
    }
    guard let writer else { return reply.fail(.readOnlyFileSystem) }
    writer.entries.make(entry, name, in: parent, reply)
  }

  func remove(
    _ name: CName, isDirectory: Bool, from parent: NodeID, _ reply: consuming Reply<ReplyKind.Status>
  ) {
    if let writer, expected(of: reply.caller) == nil {
      return writer.entries.remove(name, isDirectory: isDirectory, from: parent, reply)
    }
    grant(.disappearance(EntryKey(parent: parent, name), isDirectory: isDirectory), reply)
  }

  func rename(
    _ name: CName, in parent: NodeID, to newName: CName, in newParent: NodeID, _ flags: RenameFlags,
    _ reply: consuming Reply<ReplyKind.Status>
  ) {
    if let writer, expected(of: reply.caller) == nil {
      return writer.entries.rename(name, in: parent, to: newName, in: newParent, flags, reply)
    }
    if !flags.isEmpty { return reply.fail(.readOnlyFileSystem) }
    grant(.renaming(EntryKey(parent: parent, name), to: EntryKey(parent: newParent, newName)), reply)
  }

  private func grant(_ change: SyntheticChange, _ reply: consuming Reply<ReplyKind.Status>) {
    guard expected(of: reply.caller)?.consume(change) == true else { return reply.fail(.readOnlyFileSystem) }
    reply.send()
  }

  // MARK: - Content and attributes

  func write(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64, appends: Bool,
    _ reply: consuming Reply<ReplyKind.Write>
  ) {
    guard let writer, !node.isReserved else { return reply.fail(.readOnlyFileSystem) }
    writer.files.write(bytes, to: node, at: offset, appends: appends, reply)
  }

  func allocate(
    _ node: NodeID, mode: CInt, at offset: Int64, count: Int64, _ reply: consuming Reply<ReplyKind.Status>
  ) {
    guard let writer, !node.isReserved else { return reply.fail(.readOnlyFileSystem) }
    writer.files.allocate(node, mode: mode, at: offset, count: count, reply)
  }

  /// On a read-only mount, ENOSYS makes the kernel stop asking.
  func synchronize(_ node: NodeID, dataOnly: Bool, _ reply: consuming Reply<ReplyKind.Status>) {
    guard let writer else { return reply.fail(.noFunction) }
    if node.isReserved { return reply.send() }
    writer.files.synchronize(node, dataOnly: dataOnly, reply)
  }

  func synchronizeDirectory(_ node: NodeID, dataOnly: Bool, _ reply: consuming Reply<ReplyKind.Status>) {
    guard let writer else { return reply.fail(.noFunction) }
    if node.isReserved { return reply.send() }
    writer.files.synchronizeDirectory(node, dataOnly: dataOnly, reply)
  }

  func setAttributes(
    of node: NodeID, _ changes: AttributeChanges, _ reply: consuming Reply<ReplyKind.Attributes>
  ) {
    // A shell truncates the file that it redirects to; for the control file that has no effect.
    if node == ControlFile.node, !changes.setsPermissions { return reply.send(control.attributes) }
    if let pages = writer?.pages, pages.isOwn(reply.caller) { return pages.reply(for: node, reply) }
    if let writer, expected(of: reply.caller) == nil, !node.isReserved {
      return writer.files.setAttributes(of: node, changes, reply)
    }
    touch(node, changes, reply)
  }

  /// Grants the announcer's setting of times.
  private func touch(
    _ node: NodeID, _ changes: AttributeChanges, _ reply: consuming Reply<ReplyKind.Attributes>
  ) {
    guard !changes.setsPermissions, let expected = expected(of: reply.caller),
      let number = store.table.withLock({ table in
        (try? table.slot(of: node)).map { table[$0].inodeNumber }
      }),
      expected.consume(.touch(number))
    else { return reply.fail(.readOnlyFileSystem) }
    guard var attributes = try? store.attributes(of: node) else {
      // The file was replaced just now, which is announced by itself.
      expected.revoke()
      return reply.fail(.noSuchFileOrDirectory)
    }
    // As those of a new entry.
    attributes.timeout = 0
    reply.send(attributes)
  }
}

extension AttributeChanges {
  /// Whether owner, group or mode are set.
  fileprivate var setsPermissions: Bool { permissions != nil || owner != nil || group != nil }
}

extension Entry {
  fileprivate var kind: FileKind? {
    switch self {
    case .directory: .directory
    case .file(_, let attributes): attributes.kind
    }
  }
}
