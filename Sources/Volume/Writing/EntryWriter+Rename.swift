import Fuse
import Layers
import Posix

/// RENAME.
extension EntryWriter {
  func rename(
    _ name: CName, in parent: NodeID, to newName: CName, in newParent: NodeID, _ flags: RenameFlags,
    _ reply: consuming Reply<ReplyKind.Status>
  ) {
    do throws(Errno) {
      // RENAME_WHITEOUT is for file systems that are themselves layers.
      if !flags.isSubset(of: [.noReplace, .exchange]) { throw .invalidArgument }
      try allow(name, in: parent)
      try allow(newName, in: newParent)
      let source = EntryKey(parent: parent, name)
      let target = EntryKey(parent: newParent, newName)
      if reply.mayBeDone(intents), let intent = intents?.nodeIntent, try isDone(intent) {
        let directory = try store.merged(of: newParent)
        try directory.withPresentSpelling(of: newName) { upper.completeTaking($0, in: $1) }
        return reply.send()
      }
      do throws(Errno) {
        try rename(name, source, to: newName, target, flags, by: reply.caller, EntryOwner(reply.credentials))
      } catch {
        intents?.withdraw()
        throw error
      }
    } catch {
      return reply.fail(error)
    }
    reply.send()
  }

  func rename(
    _ name: CName, _ source: EntryKey, to newName: CName, _ target: EntryKey, _ flags: RenameFlags,
    by caller: Caller, _ writer: EntryOwner
  ) throws(Errno) {
    var entry = try store.merged(of: source.parent).lookup(name)
    var replaced = try store.merged(of: target.parent).lookup(newName)
    let areSpellings = store.areSpellings(source, target)
    let isRespelling = areSpellings && !flags.contains(.exchange)
    // The kernel, which takes them for two files, moves the name.
    if entry?.isSame(as: replaced) == true, !isRespelling, areSpellings || entry?.isFileBelow != true {
      return copyUp.queue.add([source, target].flatMap(OwnChanges.invalidations(of:)))
    }
    try copyFileUp(entry, name, source, writer)
    if flags.contains(.exchange) { try copyFileUp(replaced, newName, target, writer) }
    // The upper layer has a merged table whole from now on.
    if entry?.attributes.identity.isMergedTable == true {
      entry = try store.merged(of: source.parent).lookup(name)
    }
    if flags.contains(.exchange), replaced?.attributes.identity.isMergedTable == true {
      replaced = try store.merged(of: target.parent).lookup(newName)
    }
    let directory = try copyUp.directory(source.parent)
    let newDirectory = try copyUp.directory(target.parent)
    try store.checkRemoval(of: name, from: directory, by: caller)
    try store.checkRemoval(of: newName, from: newDirectory, by: caller)
    // A directory of a layer below keeps its spelling.
    if let moved = entry, !moved.isSame(as: replaced) {
      try upper.checkRename(name, in: directory, moved, to: newName, in: newDirectory, replaced, flags)
      let trees = [(entry, source)] + (flags.contains(.exchange) ? [(replaced, target)] : [])
      if try copyTreesUp(trees, by: writer) {
        entry = try store.merged(of: source.parent).lookup(name)
        replaced = try store.merged(of: target.parent).lookup(newName)
      }
    }
    // The kernel has the spellings that were asked for.
    store.recordSharedSpellings([source, target])
    try directory.withPresentSpelling(of: name) { name, directory throws(Errno) in
      if isRespelling, entry?.isSame(as: replaced) == true {
        return try respell(name, EntryKey(parent: source.parent, name), to: newName, target, directory)
      }
      let (present, newDirectory) = try newDirectory.presentSpelling(
        of: newDirectory.spelling(of: target.name, ofTwins: replaced))
      try withCName(present) { newName throws(Errno) in
        let (source, target) = (
          EntryKey(parent: source.parent, name), EntryKey(parent: target.parent, newName)
        )
        try move((entry, name, source, directory), to: (replaced, newName, target, newDirectory), flags)
      }
    }
  }

  /// Gives an entry another spelling of its name.
  private func respell(
    _ name: CName, _ source: EntryKey, to newName: CName, _ target: EntryKey, _ directory: MergedDirectory
  ) throws(Errno) {
    let hidden = try spellingToHide(behind: newName, in: directory, target.parent)
    try copyUp.changing([source, target] + hidden) { () throws(Errno) in
      // The upper layer has it, or another one, in that spelling.
      if try directory.top.spelling(of: target.name) != target.name {
        guard let entry = try directory.lookup(name) else { throw .noSuchFileOrDirectory }
        try announce((entry, name, source, directory), (nil, newName, target, directory), isExchange: false)
        try upper.rename(name, in: directory, to: newName, in: directory, [], found: (entry, nil))
        own?.recordEntry(newName, in: directory, at: target, events: Self.mostEvents)
        recordAbsence(of: name, in: directory, at: source, events: Self.mostEvents)
        invalidateIfChanged(entry, newName, in: directory, target)
      }
      hide(hidden, in: directory)
      store.recordRespelling(of: source, to: target)
    }
  }

  private func move(_ source: FoundEntry, to target: FoundEntry, _ flags: RenameFlags) throws(Errno) {
    let (entry, name, source, directory) = source
    let (replaced, newName, target, newDirectory) = target
    if !flags.contains(.exchange) {
      for file in store.holdFiles(named: target.name, in: target.parent) { descriptors.close(file) }
    }
    let hidden = replaced == nil ? try spellingToHide(behind: newName, in: newDirectory, target.parent) : []
    try announce(
      (entry, name, source, directory), (replaced, newName, target, newDirectory),
      isExchange: flags.contains(.exchange))
    tables?.stage(name, in: directory, as: newName, in: newDirectory)
    if flags.contains(.exchange) { tables?.stage(newName, in: newDirectory, as: name, in: directory) }
    defer {
      tables?.settle(source, isChanged: false)
      tables?.settle(target, isChanged: false)
    }
    try copyUp.changing([source, target] + hidden) { () throws(Errno) in
      if flags.isDisjoint(with: .exchange), let entry, case .file(layer: 0, _) = entry {
        // Nothing has been copied up.
        try upper.rename(
          name, in: directory, to: newName, in: newDirectory, flags, found: (entry, replaced))
      } else {
        try upper.rename(name, in: directory, to: newName, in: newDirectory, flags)
      }
      hide(hidden, in: newDirectory)
      // Not what the layer has there now: a program can have replaced it before, by what the kernel does not know.
      if flags.contains(.exchange) {
        let moved = store.recordExchange(source, target)
        own?.recordKnownEntry(moved.first, at: source, events: 2)
        own?.recordKnownEntry(moved.second, at: target, events: 2)
        invalidateIfChanged(replaced, name, in: directory, source)
      } else {
        let isSimple = directory.isAlone && newDirectory.isAlone && entry?.isDirectory == false
        let events = isSimple ? 1 : Self.mostEvents
        let moved = store.recordRename(of: source, to: target)
        own?.recordKnownEntry(moved, at: target, events: events)
        recordAbsence(of: name, in: directory, at: source, events: events)
      }
      invalidateIfChanged(entry, newName, in: newDirectory, target)
      if store.visibleTimes != nil { invalidateTimes([source, target]) }
    }
  }

  /// The kernel takes the times of a file that it has renamed to be the same.
  private func invalidateTimes(_ keys: [EntryKey]) {
    let nodes = keys.flatMap { store.files(named: $0.name, in: $0.parent, of: 0) }
    copyUp.queue.add(nodes.map { Invalidation(subject: .file($0), aspects: .attributes) })
  }

  /// Invalidates a file that was renamed, unless no other program has changed it: events of what was done to it before
  /// still have its former name, and are taken for those of our change.
  /// - Parameters:
  ///   - entry: as it was found before.
  ///   - name: its new name.
  private func invalidateIfChanged(
    _ entry: Entry?, _ name: CName, in directory: MergedDirectory, _ key: EntryKey
  ) {
    // A copy was made just now.
    guard let own, case .file(layer: 0, let before) = entry else { return }
    let nodes = store.files(named: key.name, in: key.parent, of: 0)
    if let node = nodes.first, nodes.count == 1,
      own.isSettled(node, as: before) || store.isKnown(node, as: before),
      // It may have been changed meanwhile.
      let present = try? directory.top.attributes(of: name), present.differsInChangeTimeOnly(from: before)
    {
      return own.recordChangeTime(of: node, present)
    }
    copyUp.queue.add(nodes.map { Invalidation(subject: .file($0), aspects: .content) })
  }

  /// An entry, as it was found, and where.
  private typealias FoundEntry = (entry: Entry?, name: CName, key: EntryKey, directory: MergedDirectory)

  private func announce(_ source: FoundEntry, _ target: FoundEntry, isExchange: Bool) throws(Errno) {
    guard let intents else { return }
    guard let node = store.firstNode(named: source.key), let moved = try upperIdentity(of: source) else {
      return intents.begin()
    }
    intents.begin(
      NodeIntent(
        kind: isExchange ? .exchange : .rename, node: node, source: source.key, target: target.key,
        moved: moved,
        exchanged: isExchange ? try upperIdentity(of: target) : nil))
  }

  /// What the upper layer has of an entry, which may have just been copied up.
  private func upperIdentity(of found: FoundEntry) throws(Errno) -> FileIdentity? {
    guard case .file(let layer, _) = found.entry, layer != 0 else { return found.entry?.upperIdentity }
    do throws(Errno) { return try found.directory.top.attributes(of: found.name).identity } catch {
      if error == .noSuchFileOrDirectory { return nil }
      throw error
    }
  }

  /// Whether a predecessor has done what was intended. It is recorded then, if it was not.
  private func isDone(_ intent: NodeIntent) throws(Errno) -> Bool {
    func atUpper(_ key: EntryKey) throws(Errno) -> FileIdentity? {
      let directory = try store.merged(of: key.parent)
      return try withCName(key.name) { name throws(Errno) in try directory.lookup(name) }?.upperIdentity
    }
    guard try atUpper(intent.target) == intent.moved else { return false }
    let atSource = try atUpper(intent.source)
    guard intent.kind == .exchange ? atSource == intent.exchanged : atSource != intent.moved else {
      return false
    }
    if store.hasName(intent.source, intent.node) { store.record(intent) }
    return true
  }

  /// Copies a non-directory up, by its node if the kernel knows it.
  func copyFileUp(
    _ entry: Entry?, _ name: CName, _ key: EntryKey, _ writer: EntryOwner, _ staged: StagedCopies? = nil
  ) throws(Errno) {
    guard case .file(let layer, let attributes) = entry, layer != 0 || attributes.identity.isMergedTable
    else { return }
    if let node = store.file(attributes.identity, layer: layer, named: key) {
      return try copyUp.file(node, by: writer, staged: staged)
    }
    guard attributes.permits(.change) else { throw .notPermitted }
    guard let part = try store.merged(of: key.parent).part(of: layer, with: name, attributes.identity) else {
      throw .staleFileHandle
    }
    let directory = try copyUp.directory(key.parent)
    try directory.withPresentSpelling(of: name) { present, directory throws(Errno) in
      _ = try upper.copyUp(
        present, from: part, as: name, identity: attributes.identity, to: directory.top, size: nil,
        as: writer, staged: staged,
        willPublish: { [store] in store.recordTimeOfCopy($0, of: attributes, layer: layer, key) })
    }
  }
}

extension Entry {
  fileprivate var isDirectory: Bool { if case .directory = self { true } else { false } }

  /// Whether it is a file of a layer below the upper one, the names of which are files of their own to a program that changes
  /// them.
  fileprivate var isFileBelow: Bool { if case .file(let layer, _) = self { layer > 0 } else { false } }
}

extension FileStatus {
  /// Whether a rename can have made the difference.
  fileprivate func differsInChangeTimeOnly(from other: FileStatus) -> Bool {
    (size, modified, mode, owner, group) == (other.size, other.modified, other.mode, other.owner, other.group)
  }
}
