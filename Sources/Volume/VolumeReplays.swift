import Fuse
import Glibc
import Layers
import Posix

/// Changes that are asked for through the mount: only those that the announcer makes are granted, since they have
/// been made already.
extension Volume {
  /// Set in the numbers of nodes that stand for what is gone, and in no other's.
  private static let phantoms: UInt64 = 3 << 62

  /// Answers a LOOKUP that belongs to a replay.
  func pay(_ answer: ReplayExpectation.Answer, _ reply: consuming Reply<Answers.Entry>) {
    switch answer {
    case .absent: reply.fail(.noEntry)
    case .phantom(let isDirectory): _ = reply.pay(phantom(isDirectory: isDirectory))
    case .node(let place): pay(entryAt: place, nil, reply)
    }
  }

  /// An entry that the kernel may remove. It is valid for no time at all, so that nobody else comes to see it, and
  /// has a number of its own, since the kernel may still have the one before.
  private func phantom(isDirectory: Bool) -> EntryAnswer {
    let number =
      Self.phantoms
      | phantomCount.withLock { count in
        count = (count + 1) & (1 << 62 - 1)
        return count
      }
    let now = Moment.now
    let attributes =
      isDirectory
      ? Attributes(directory: 0o700, owner: geteuid(), group: getegid(), modified: now, changed: now)
      : Attributes(regularFile: 0o600, owner: geteuid(), group: getegid(), size: 0, modified: now)
    return EntryAnswer(
      node: NodeID(rawValue: number), attributes: NodeAttributes(attributes, inodeNumber: number, timeout: 0),
      timeout: 0)
  }

  /// Pays with what has a name now.
  /// - Parameter kind: what it must be; nil for a file that is about to be found by another name than this, for
  ///   which the answer is then not kept.
  private func pay(entryAt place: Place, _ kind: FileKind?, _ reply: consuming Reply<Answers.Entry>) {
    var entry: EntryAnswer
    do throws(Errno) {
      let merged = try merged(of: place.parent)
      entry = try withCName(place.name) { name throws(Errno) in
        guard let found = try merged.lookup(name), kind == nil || found.kind == kind else { throw .noEntry }
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
    if !reply.pay(entry) {
      announcer?.expectation.revoke()
      forget(entry.node, lookups: 1)
    }
  }

  // MARK: - Requests

  public func make(
    _ entry: NewEntry, _ name: CName, in parent: NodeID, reply: consuming Reply<Answers.Entry>
  ) {
    let place = Place(parent: parent, name)
    guard let expectation = expectation(of: reply.requester), let kind = expectation.takes(entry, at: place)
    else { return reply.fail(.readOnlyFileSystem) }
    pay(entryAt: place, kind, reply)
  }

  public func remove(
    _ name: CName, isDirectory: Bool, from parent: NodeID, reply: consuming Reply<Answers.Done>
  ) {
    let replay = Replay.disappearance(Place(parent: parent, name), isDirectory: isDirectory)
    pay(if: replay, reply)
  }

  public func rename(
    _ name: CName, in parent: NodeID, to newName: CName, in newParent: NodeID,
    reply: consuming Reply<Answers.Done>
  ) {
    pay(if: .renaming(Place(parent: parent, name), to: Place(parent: newParent, newName)), reply)
  }

  public func setAttributes(
    of node: NodeID, concernsPermissions: Bool, reply: consuming Reply<Answers.Attributes>
  ) {
    // The shell cuts what it is about to write to; the control file does not mind.
    if node == ControlFile.node, !concernsPermissions { return reply.pay(control.attributes) }
    guard !concernsPermissions, let expectation = expectation(of: reply.requester),
      let number = table.withLock({ table in (try? table.slot(of: node)).map { table[$0].inodeNumber } }),
      expectation.takes(.touch(number))
    else { return reply.fail(.readOnlyFileSystem) }
    guard var attributes = try? attributes(of: node) else {
      // It was replaced a moment ago, of which there will be news.
      expectation.revoke()
      return reply.fail(.noEntry)
    }
    // As those of a new entry.
    attributes.timeout = 0
    reply.pay(attributes)
  }

  private func pay(if replay: Replay, _ reply: consuming Reply<Answers.Done>) {
    guard let expectation = expectation(of: reply.requester), expectation.takes(replay) else {
      return reply.fail(.readOnlyFileSystem)
    }
    reply.pay()
  }

  /// What is expected of a requester; nil unless it is the announcer.
  func expectation(of requester: Requester) -> ReplayExpectation? {
    guard let expectation = announcer?.expectation, expectation.isOwn(requester) else { return nil }
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

extension Place {
  init(parent: NodeID, _ name: CName) {
    self.init(parent: parent, name: [UInt8](bytesOf: name))
  }
}
