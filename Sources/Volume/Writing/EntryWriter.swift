import Fuse
import Glibc
import Layers
import Posix

/// Requests that create, remove and rename entries of a writable mount.
final class EntryWriter: Sendable {
  let store: NodeStore
  let copyUp: NodeCopyUp
  let descriptors: WriteDescriptors
  /// nil unless tables of strings are merged.
  let tables: TableWriter?
  let reserved: ReservedNames
  /// The most bytes that are copied to rename a directory of layers below; 0 if none is renamed.
  let renameCopy: UInt64

  init(
    store: NodeStore, copyUp: NodeCopyUp, descriptors: WriteDescriptors, tables: TableWriter?,
    reserved: ReservedNames, renameCopy: UInt64
  ) {
    (self.store, self.copyUp, self.descriptors, self.reserved) = (store, copyUp, descriptors, reserved)
    (self.tables, self.renameCopy) = (tables, renameCopy)
  }

  var upper: UpperLayer { copyUp.upper }
  var own: OwnChanges? { copyUp.own }
  var intents: IntentLog? { copyUp.intents }

  // MARK: - New entries

  func make(
    _ entry: NewEntry, _ name: CName, in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>
  ) {
    let owner = EntryOwner(reply.credentials)
    do throws(Errno) {
      try allow(name, in: parent)
      let (caller, mayExist) = (reply.caller, reply.mayBeDone(intents))
      let made = try repeating(entry.isRegularFile, name, in: parent) { () throws(Errno) in
        try add(
          name, in: parent, by: caller, mayExist: mayExist, isDirectory: entry.kind == .directory
        ) { name, directory throws(Errno) in
          try make(entry, name, in: directory, owner)
        }
      }
      if !reply.send(made) { store.forget(made.node, lookups: 1) }
    } catch {
      // It has just appeared in a layer, and open(2) without O_EXCL opens it.
      let isRetried = error == .fileExists && entry.isRegularFile
      if isRetried { store.retried.add(EntryKey(parent: parent, name)) }
      reply.fail(isRetried ? .staleFileHandle : error)
    }
  }

  /// How often it is tried to make a file whose name other programs make and remove in the layers; and how often, with a pause
  /// in microseconds, once the kernel has looked the name up again after ESTALE, which it does only once.
  private static let (attempts, lastAttempts, pause): (Int, Int, UInt32) = (16, 100, 1000)

  private func repeating<Result>(
    _ isFile: Bool, _ name: CName, in parent: NodeID, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let isRetry = isFile && store.retried.contains(name, in: parent)
    for _ in 1..<(isRetry ? Self.lastAttempts : isFile ? Self.attempts : 1) {
      do throws(Errno) { return try body() } catch { if error != .fileExists { throw error } }
      if isRetry { usleep(Self.pause) }
    }
    return try body()
  }

  /// - Returns: a regular file, open for writing.
  private func make(
    _ entry: NewEntry, _ name: CName, in directory: MergedDirectory, _ owner: EntryOwner
  ) throws(Errno) -> LayerFile? {
    switch entry {
    case .node(let mode, _) where entry.isRegularFile:
      return try store.evictingOnDemand { () throws(Errno) in
        let file = try upper.makeFile(name, in: directory, mode: mode & 0o7777, owner)
        if let file { tables?.stage(file, as: name, in: directory) }
        return file
      }
    case .node(let mode, let device):
      try upper.makeNode(name, in: directory, mode: mode, device: device, owner)
    case .directory(let mode): try upper.makeDirectory(name, in: directory, mode: mode, owner)
    case .symbolicLink(let target): try upper.makeSymbolicLink(name, in: directory, target: target, owner)
    }
    return nil
  }

  func makeLink(
    to node: NodeID, _ name: CName, in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>
  ) {
    let (caller, mayBeDone) = (reply.caller, reply.mayBeDone(intents))
    let owner = EntryOwner(reply.credentials)
    do throws(Errno) {
      try allow(name, in: parent)
      // As soon as the reply is sent, the kernel may look up the other name of the node.
      let table = tables?.tableKey(of: node)
      try copyUp.file(node, by: owner)
      var made = try add(name, in: parent, by: caller, mayExist: mayBeDone, isNewFile: false) {
        name, directory throws(Errno) in
        try store.withUpperFile(of: node) { file throws(Errno) in
          try upper.makeLink(name, in: directory, to: file, by: owner)
        }
        // Its link count.
        store.recordAttributeChange(of: node)
        return nil
      }
      // The kernel takes the attributes of a file that it knows even if they were invalidated meanwhile.
      made.attributes.timeout = 0
      let linked = made.node
      if !reply.send(made) { store.forget(linked, lookups: 1) }
      tables?.settle(EntryKey(parent: parent, name), isChanged: true)
      if let table { tables?.settle(table, isChanged: false) }
    } catch {
      reply.fail(error)
    }
  }

  /// Adds a name to a directory, so that the events of it are known as ours.
  /// - Parameters:
  ///   - mayExist: whether an entry that is there is as good as a new one.
  ///   - isNewFile: whether the body makes a file, rather than another name of one.
  ///   - isDirectory: whether the body makes a directory.
  ///   - body: is passed the name in the spelling that is changed; returns the file that it has made, if it is open for
  ///     writing.
  /// - Returns: the entry; its node has one lookup more.
  private func add(
    _ name: CName, in parent: NodeID, by caller: Caller, mayExist: Bool, isNewFile: Bool = true,
    isDirectory: Bool = false,
    _ body: (CName, MergedDirectory) throws(Errno) -> LayerFile?
  ) throws(Errno) -> EntryReply {
    let directory = try copyUp.directory(parent)
    try store.checkChange(of: directory, by: caller)
    return try directory.withPresentSpelling(of: name) { name, directory throws(Errno) in
      try add(
        name, to: directory, parent, mayExist: mayExist, isNewFile: isNewFile, isDirectory: isDirectory, body)
    }
  }

  private func add(
    _ name: CName, to directory: MergedDirectory, _ parent: NodeID, mayExist: Bool, isNewFile: Bool,
    isDirectory: Bool, _ body: (CName, MergedDirectory) throws(Errno) -> LayerFile?
  ) throws(Errno) -> EntryReply {
    let hidden = try spellingToHide(behind: name, in: directory, parent)
    return try copyUp.changing([EntryKey(parent: parent, name)] + hidden) { () throws(Errno) in
      var isNew = isNewFile
      do throws(Errno) {
        intents?.begin()
        let file = try store.awaitingFreedSpace { () throws(Errno) in try body(name, directory) }
        hide(hidden, in: directory)
        if let file { return try entry(of: file, name, in: parent, directory) }
      } catch {
        guard error == .fileExists, mayExist else {
          intents?.withdraw()
          throw error
        }
        isNew = false
        upper.completeTaking(name, in: directory)
        // A predecessor may have died before it did.
        hide(hidden, in: directory)
      }
      store.recordChange(in: [parent])
      return try entry(name, in: parent, isNew: isNew, isLikelyDirectory: isDirectory)
    }
  }

  /// The other spelling in which a listing would show a new entry of this name.
  func spellingToHide(
    behind name: CName, in directory: MergedDirectory, _ parent: NodeID
  ) throws(Errno) -> [EntryKey] {
    let spelling = try upper.spellingToHide(behind: name, in: directory)
    return spelling.map { [EntryKey(parent: parent, name: $0)] } ?? []
  }

  /// Makes whiteouts for other spellings of a new entry. Where none can be made, a listing shows that spelling.
  func hide(_ spellings: [EntryKey], in directory: MergedDirectory) {
    for key in spellings where (try? upper.hide(key.name, in: directory)) != nil {
      try? withCName(key.name) { own?.recordEntry($0, in: directory, at: key, events: 1) }
    }
  }

  /// The entry of a file that was made just now; its node has one lookup more.
  private func entry(
    of file: LayerFile, _ name: CName, in parent: NodeID, _ directory: MergedDirectory
  ) throws(Errno) -> EntryReply {
    store.recordChange(in: [parent])
    let attributes = try file.attributes()
    own?.recordEntry(attributes.identity, at: EntryKey(parent: parent, name), events: 1)
    let entry = try store.entry(.file(layer: 0, attributes), name, in: parent, directory)
    own?.recordNewFile(entry.node, attributes)
    // The next thing that most programs do is to write to it.
    if attributes.mode & (S_ISUID | S_ISGID) == 0 {
      descriptors.keep(file, attributes.identity, of: entry.node)
    }
    return entry
  }

  /// The entry that has a name now; its node has one lookup more.
  /// - Parameter isNew: whether it was made just now.
  private func entry(
    _ name: CName, in parent: NodeID, isNew: Bool, isLikelyDirectory: Bool
  ) throws(Errno) -> EntryReply {
    try store.evictingOnDemand { () throws(Errno) in
      let merged = try store.merged(of: parent)
      guard let found = try merged.lookup(name, isLikelyDirectory: isLikelyDirectory) else {
        throw .noSuchFileOrDirectory
      }
      // An entry can be exchanged with a whiteout.
      own?.recordEntry(
        found.upperIdentity, at: EntryKey(parent: parent, name), events: isLikelyDirectory ? 2 : 1)
      let entry = try store.entry(found, name, in: parent, merged)
      if isNew { own?.recordNewFile(entry.node, entry.attributes.attributes) }
      return entry
    }
  }

  /// - Throws: EPERM for the names of bundlefs and for those of whiteouts, which no entry can have, and for `.ciopfs` unless a
  ///   layer has it; ENAMETOOLONG.
  func allow(_ name: CName, in parent: NodeID) throws(Errno) {
    if ResourceDirectoryNodes.contain(parent) { throw .notPermitted }
    if parent == .root, reserved.contains(name) { throw .notPermitted }
    if WhiteoutMarker.isMarker(name) { throw .notPermitted }
    if reserved.isFoldingMarker(name), try store.merged(of: parent).lookup(name) == nil {
      throw .notPermitted
    }
    if strlen(name) > NAME_MAX { throw .fileNameTooLong }
  }

  // MARK: - Removal

  func remove(
    _ name: CName, isDirectory: Bool, from parent: NodeID, _ reply: consuming Reply<ReplyKind.Status>
  ) {
    let (caller, mayBeDone) = (reply.caller, reply.mayBeDone(intents))
    do throws(Errno) {
      try allow(name, in: parent)
      let directory = try copyUp.directory(parent)
      try store.checkRemoval(of: name, from: directory, by: caller)
      try directory.withPresentSpelling(of: name) { name, directory throws(Errno) in
        try remove(name, isDirectory, from: directory, parent, mayBeDone: mayBeDone)
      }
    } catch {
      return reply.fail(error)
    }
    reply.send()
  }

  private func remove(
    _ name: CName, _ isDirectory: Bool, from directory: MergedDirectory, _ parent: NodeID, mayBeDone: Bool
  ) throws(Errno) {
    let key = EntryKey(parent: parent, name)
    // Its own watch reports the removal, which makes it unknown.
    let removed = isDirectory ? store.presentParts(ofDirectory: key.name, in: parent) : nil
    try copyUp.changing([key]) { () throws(Errno) in
      do throws(Errno) {
        intents?.begin()
        try remove(name, isDirectory, from: directory, key, isSole: removed?.parts.count == 1)
      } catch {
        guard error == .noSuchFileOrDirectory, mayBeDone else {
          intents?.withdraw()
          throw error
        }
      }
      recordAbsence(of: name, in: directory, at: key, events: isDirectory ? Self.mostEvents : 1)
      store.recordRemoval(of: key.name, in: parent, removed)
    }
  }

  private func remove(
    _ name: CName, _ isDirectory: Bool, from directory: MergedDirectory, _ key: EntryKey, isSole: Bool
  ) throws(Errno) {
    let files = isDirectory ? [] : store.holdFiles(named: key.name, in: key.parent)
    for file in files { descriptors.close(file) }
    // A whiteout may need the inode of what was removed just before.
    try store.awaitingFreedSpace { () throws(Errno) in
      if isDirectory {
        try upper.removeDirectory(name, from: directory, isSole: isSole)
      } else {
        try upper.remove(name, from: directory, isKnown: !files.isEmpty)
      }
    }
    store.recordFreedSpace()
  }

  /// Records that a name has been taken away, from the upper layer or by a whiteout.
  func recordAbsence(
    of name: CName, in directory: MergedDirectory, at key: EntryKey, events: Int
  ) {
    if directory.isAlone {
      own?.recordEntry(nil, at: key, events: events)
    } else {
      own?.recordEntry(name, in: directory, at: key, events: events)
    }
  }

  /// The most events of a name that a change causes: what has whiteouts is exchanged and moved away.
  static let mostEvents = 4
}

extension Entry {
  /// What the upper layer has of it; nil for nothing.
  var upperIdentity: FileIdentity? {
    switch self {
    case .file(let layer, let attributes): layer == 0 ? attributes.identity : nil
    case .directory(let directory, _): directory.isInUpperLayer ? directory.top.identity : nil
    }
  }
}

extension EntryOwner {
  init(_ credentials: Credentials) {
    self.init(user: credentials.user, group: credentials.group, umask: credentials.umask)
  }

  /// The owner of a file, which counts as its writer where the caller is unknown.
  init(_ file: FileStatus) { self.init(user: file.owner, group: file.group, umask: 0) }
}
