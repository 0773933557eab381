import Fuse
import Layers
import Posix

/// What the mount's own changes do to nodes. The layer has been changed already, and the kernel changes its caches itself.
extension NodeStore {
  /// A directory's or file's directory and its name there, as of the last lookup.
  func parent(of node: NodeID) throws(Errno) -> (directory: NodeID, name: [UInt8]) {
    try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      return (table.number(of: table[slot].parent), table.name(of: slot))
    }
  }

  /// The inode number of a directory that has another than its path gives it, as far as it is known.
  func knownInodeNumber(of name: CName, in directory: NodeID) -> UInt64? {
    if !isWritable { return nil }
    return table.withLock { table in
      guard let parent = try? table.slot(of: directory) else { return nil }
      let slot = table.directory([UInt8](bytesOf: name), in: parent)
      return slot == 0 ? nil : table[slot].inodeNumber
    }
  }

  /// A directory's part in the upper layer, if that is known and the only one: events do not tell twins apart.
  func upperPart(of directory: NodeID) -> LayerDirectory? {
    knownParts(of: directory)?.solePart(of: 0)
  }

  /// Whether the upper layer has a file. A merged table is in no layer.
  func isInUpperLayer(_ file: NodeID) throws(Errno) -> Bool {
    try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: file)
      if table[slot].kind == .directory { throw .isDirectory }
      return table[slot].layer == 0 && !table[slot].identity.isMergedTable
    }
  }

  /// The file that a node stands for.
  func identity(of file: NodeID) throws(Errno) -> FileIdentity {
    try table.withLock { table throws(Errno) in table[try table.slot(of: file)].identity }
  }

  func isDetached(_ file: NodeID) throws(Errno) -> Bool {
    try table.withLock { table throws(Errno) in table[try table.slot(of: file)].isDetached }
  }

  func isPinned(_ file: NodeID) throws(Errno) -> Bool {
    try table.withLock { table throws(Errno) in table[try table.slot(of: file)].isPinned }
  }

  /// Records what a reply is about to give to the kernel for a name.
  func recordLookup(_ found: Entry?, _ name: CName, in directory: NodeID) {
    guard let lookupObserver else { return }
    let key = EntryKey(parent: directory, name)
    if spellings == nil { return lookupObserver.recordLookup(found, at: key) }
    // What was found can have another spelling.
    if let part = upperPart(of: directory) { lookupObserver.recordSpelling(at: key, in: part) }
  }

  /// Records that the mount has changed directories. What is being prepared from their former state is not used.
  func recordChange(in directories: [NodeID]) {
    table.withLock { table in
      for directory in directories {
        guard let slot = try? table.slot(of: directory) else { continue }
        table[slot].directory?.version += 1
      }
    }
  }

  /// Records that a program has written to a file, perhaps behind its end, or set its size, which the kernel knows by
  /// itself. What is being prepared has the former content or attributes.
  func recordSize(of file: NodeID, atLeast end: UInt64) {
    table.withLock { table in
      guard let slot = try? table.slot(of: file) else { return }
      if let reported = table[slot].reportedSize, reported < end { table[slot].reportedSize = end }
      table.recordAttributeChange(slot)
    }
  }

  func recordSize(of file: NodeID, _ size: UInt64) {
    table.withLock { table in
      guard let slot = try? table.slot(of: file) else { return }
      table[slot].reportedSize = size
      table.recordAttributeChange(slot)
    }
  }

  /// Pins the non-directories that are known by a name and that are about to lose it, since programs may have them open.
  /// Those of the upper layer are opened, FIFOs, devices and links with `O_PATH`; those of other layers stay there.
  /// - Returns: the files of the upper layer.
  func holdFiles(named name: [UInt8], in directory: NodeID) -> [NodeID] {
    let files = table.withLock { table -> [NodeID] in
      guard let slot = try? table.slot(of: directory) else { return [] }
      let nodes = table.nodes(named: name, in: slot).filter { table[$0].kind != .directory }
      for node in nodes where table[node].layer != 0 { table[node].pin() }
      return nodes.filter { table[$0].layer == 0 }.map { table.number(of: $0) }
    }
    for file in files where (try? presentFile(of: file)) == nil {
      guard let (opened, identity) = try? openByName(file) else { continue }
      _ = try? keep(opened, of: identity, for: file)
    }
    return files
  }

  /// A node that has a name; nil if the kernel knows none.
  func firstNode(named key: EntryKey) -> NodeID? {
    table.withLock { table in
      guard let parent = try? table.slot(of: key.parent) else { return nil }
      return table.nodes(named: key.name, in: parent).first.map { table.number(of: $0) }
    }
  }

  func hasName(_ key: EntryKey, _ node: NodeID) -> Bool {
    table.withLock { table in
      guard let parent = try? table.slot(of: key.parent), let slot = try? table.slot(of: node) else {
        return false
      }
      return table.nodes(named: key.name, in: parent).contains(slot)
    }
  }

  /// The node of a directory that has a name; nil if the kernel does not know it.
  func directory(named name: [UInt8], in parent: NodeID) -> NodeID? {
    table.withLock { table in
      guard let parent = try? table.slot(of: parent) else { return nil }
      let slot = table.directory(name, in: parent)
      return slot == 0 ? nil : table.number(of: slot)
    }
  }

  /// A directory's parts, as far as they are known.
  func knownParts(of directory: NodeID) -> MergedDirectory? {
    table.withLock { table in (try? Self.state(of: directory, table))?.merged }
  }

  /// The parts of a directory that has a name; nil if the kernel does not know it. They are looked up where they are not
  /// known, as without a watcher and in a successor.
  func presentParts(ofDirectory name: [UInt8], in parent: NodeID) -> MergedDirectory? {
    directory(named: name, in: parent).flatMap { knownParts(of: $0) ?? (try? merged(of: $0)) }
  }

  /// Records that the mount has removed a name.
  /// - Parameter removed: the parts of a directory, as they were before.
  func recordRemoval(of name: [UInt8], in directory: NodeID, _ removed: MergedDirectory? = nil) {
    let released = table.withLock { table -> [AnyObject] in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.detachAll(named: name, in: slot, removed: removed)
    }
    withExtendedLifetime(released) {}
    recordChange(in: [directory])
  }

  /// Records that the mount has renamed an entry; what had the new name has lost it.
  /// - Returns: what the kernel has moved, if that is certain.
  @discardableResult
  func recordRename(of source: EntryKey, to target: EntryKey) -> FileIdentity? {
    let removed = directory(named: target.name, in: target.parent).flatMap(knownParts)
    let (moved, released) = table.withLock { table -> (FileIdentity?, [AnyObject]) in
      guard let from = try? table.slot(of: source.parent), let to = try? table.slot(of: target.parent) else {
        return (nil, [])
      }
      let moved = table.knownUpperEntry(named: source.name, in: from)
      let released = table.detachAll(named: target.name, in: to, removed: removed)
      for node in table.nodes(named: source.name, in: from) {
        table.rename(node, from: source, to: target.name, in: to)
      }
      return (moved, released)
    }
    withExtendedLifetime(released) {}
    moveTime(of: source, to: target)
    recordChange(in: [source.parent, target.parent])
    return moved
  }

  /// Records that the mount has given an entry another spelling of its name.
  func recordRespelling(of source: EntryKey, to target: EntryKey) {
    table.withLock { table in
      guard let parent = try? table.slot(of: source.parent) else { return }
      for node in table.nodes(named: source.name, in: parent) {
        table.rename(node, from: source, to: target.name, in: parent)
      }
    }
    recordChange(in: [source.parent])
  }

  /// Records that the mount has exchanged two entries.
  /// - Returns: what the kernel takes the names for from now on, if that is certain.
  @discardableResult
  func recordExchange(
    _ first: EntryKey, _ second: EntryKey
  ) -> (first: FileIdentity?, second: FileIdentity?) {
    defer {
      moveTime(of: first, to: second, isExchange: true)
      recordChange(in: [first.parent, second.parent])
    }
    return table.withLock { table in
      guard let a = try? table.slot(of: first.parent), let b = try? table.slot(of: second.parent) else {
        return (nil, nil)
      }
      let known = (
        first: table.knownUpperEntry(named: second.name, in: b),
        second: table.knownUpperEntry(named: first.name, in: a)
      )
      let (ofFirst, ofSecond) = (
        table.nodes(named: first.name, in: a), table.nodes(named: second.name, in: b)
      )
      for node in ofFirst { table.rename(node, from: first, to: second.name, in: b) }
      for node in ofSecond { table.rename(node, from: second, to: first.name, in: a) }
      return known
    }
  }
}

extension NodeStore {
  /// Runs the body with a non-directory of the upper layer, opened with `O_PATH`, or in any way if it has lost its name.
  /// - Throws: ESTALE if it is lost; what the body throws.
  func withUpperFile<Result: ~Copyable>(
    of node: NodeID, _ body: (LayerFile) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    if try isDetached(node), let file = try presentFile(of: node) { return try body(file) }
    return try withLocation(of: node) { directory, name, identity throws(Errno) in
      guard directory.layer == 0 else { throw .staleFileHandle }
      return try body(try directory.openPath(name, identity: identity))
    }
  }

  /// Opens a file of the upper layer for writing.
  /// - Returns: the file and its present attributes.
  /// - Throws: as `withUpperFile`; errors of open(2).
  func openUpperFileForWriting(
    _ node: NodeID
  ) throws(Errno) -> (file: LayerFile, attributes: FileStatus) {
    if try isDetached(node), let file = try presentFile(of: node) {
      let again = try file.reopened([.write])
      return (again, try again.attributes())
    }
    return try withLocation(of: node) { directory, name, identity throws(Errno) in
      guard directory.layer == 0 else { throw .staleFileHandle }
      return try directory.openFileForWriting(name, identity: identity)
    }
  }

  /// The node of a file that has a name; nil if the kernel does not know it.
  func file(_ identity: FileIdentity, layer: Int, named key: EntryKey) -> NodeID? {
    table.withLock { table in
      guard let parent = try? table.slot(of: key.parent) else { return nil }
      return table.nodes(named: key.name, in: parent)
        .first { table[$0].identity == identity && table[$0].layer == layer }.map { table.number(of: $0) }
    }
  }

  /// Records that the mount has changed attributes, which a listing in preparation has with a file's name.
  func recordAttributeChange(of node: NodeID) {
    table.withLock { table in
      if let slot = try? table.slot(of: node) { table.recordAttributeChange(slot) }
    }
  }
}
