import Posix

/// A layer's directory where case does not count: it has an entry under each spelling of the entry's name.
///
/// An entry that exists in the spelling asked for is that entry. Otherwise it is the first by bytes that folds to the
/// same name. A whiteout is only seen by `hasWhiteoutMarker` then, as it hides nothing of its own directory.
extension LayerDirectory {
  /// Whether the names of entries are compared without case.
  public var foldsNames: Bool { spellings != nil }

  /// To be called when an event reports that an entry came or went.
  public func recordNameChange() { spellings?.recordChange() }

  /// Calls the body with a name, and again with the entry's own spelling if it finds nothing, or a whiteout instead of
  /// the entry.
  @inline(__always)
  func withSpelling<Result: ~Copyable>(
    of name: CName, _ body: (CName) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    do throws(Errno) { return try body(name) } catch {
      // A whiteout is another file, and on most mounts a device that cannot be opened.
      let mayBeRespelled =
        error == .noSuchFileOrDirectory || error == .staleFileHandle || error == .permissionDenied
      guard let spellings, mayBeRespelled,
        let other = try spelling(of: name, spellings)
      else { throw error }
      return try withCName(other, body)
    }
  }

  /// The spelling of the entry that a name finds here; nil if there is none.
  /// - Throws: what reading the directory throws.
  public func spelling(of name: [UInt8]) throws(Errno) -> [UInt8]? {
    guard let spellings else { return name }
    return try foldedNames(spellings).entry(name, key: NameFolding.key(of: name))
  }

  /// A path below this directory in the spellings of its entries. What does not exist stays as it is.
  /// - Throws: what reading the directories throws.
  public func spelled(_ path: [[UInt8]]) throws(Errno) -> [[UInt8]] {
    if spellings == nil { return path }
    var directory = MergedDirectory(parts: [self])
    var (spelled, paths) = (path, [identity: [[UInt8]]()])
    for (index, name) in path.enumerated() {
      let entries = try directory.entries(named: name, in: directory.parts.indices)
      guard let first = entries.first, let above = paths[first.parent.identity] else { break }
      spelled.replaceSubrange(...index, with: above + [first.name])
      for entry in entries {
        guard case .directory(let inner, _) = try entry.find() else { continue }
        paths[inner.identity] = (paths[entry.parent.identity] ?? []) + [entry.name]
      }
      let found = try withCName(name) { name throws(Errno) in try directory.lookup(name) }
      guard case .directory(let next, _) = found else { break }
      directory = next
    }
    return spelled
  }

  /// The spellings of a name of which this directory has an entry or a whiteout.
  /// - Throws: what reading the directory throws.
  public func allSpellings(of name: [UInt8]) throws(Errno) -> [[UInt8]] {
    if spellings == nil { return [name] }
    let key = NameFolding.key(of: name)
    var found: Set<[UInt8]> = []
    try forEachEntry { entry throws(Errno) in
      let marked = WhiteoutMarker.name(concernedBy: [UInt8](bytesOf: entry.name))
      if NameFolding.key(of: marked) == key { found.insert(marked) }
    }
    return found.sorted { $0.lexicographicallyPrecedes($1) }
  }

  private func spelling(of name: CName, _ spellings: SpellingIndex) throws(Errno) -> [UInt8]? {
    let bytes = [UInt8](bytesOf: name)
    let found = try spelling(of: bytes)
    return found == bytes ? nil : found
  }

  /// Finds an entry in another spelling than the one that was found missing or a whiteout.
  func findFolded(_ name: CName, _ spellings: SpellingIndex, isLikelyDirectory: Bool) throws(Errno) -> Found {
    // The bound guards against a name that is respelled endlessly.
    for _ in 0..<64 {
      guard let other = try spelling(of: name, spellings) else { return .nothing }
      let found = try withCName(other) { other throws(Errno) in
        try findExact(other, isLikelyDirectory: isLikelyDirectory)
      }
      switch found {
      case .file, .directory: return found
      case .nothing, .whiteout: spellings.recordChange()
      }
    }
    throw .ioError
  }

  /// Whether there is an entry of this very spelling, which is no device whiteout.
  public func hasEntry(_ name: [UInt8]) throws(Errno) -> Bool {
    do throws(Errno) {
      return try withCName(name) { name throws(Errno) in try !attributesExact(of: name).isWhiteoutDevice }
    } catch {
      if error == .noSuchFileOrDirectory || error == .fileNameTooLong { return false }
      throw error
    }
  }

  /// Whether there is an entry or a whiteout of a name, in any spelling.
  func mentions(_ name: CName) throws(Errno) -> Bool {
    guard let spellings else { return try contains(name) }
    let key = NameFolding.key(of: [UInt8](bytesOf: name))
    let names = try foldedNames(spellings)
    return names.first[key] != nil || names.hidden.contains(key)
  }

  /// Whether a marker or a character device hides a name in the layers below.
  func hidesFolded(_ name: CName, _ spellings: SpellingIndex) throws(Errno) -> Bool {
    try foldedNames(spellings).hidden.contains(NameFolding.key(of: [UInt8](bytesOf: name)))
  }

  /// The names of the directory, read again if they may have changed.
  func foldedNames(_ spellings: SpellingIndex) throws(Errno) -> FoldedNames {
    let state = try spellingState(spellings)
    if let known = spellings.names(in: state) { return known }
    let names = try readNames(recordsInodes: true) { _, _, _ in }
    keep(names, readIn: state, spellings)
    return names
  }

  /// Reads the directory.
  /// - Parameters:
  ///   - recordsInodes: whether the inode numbers that the directory records will do.
  ///   - body: receives each entry that is no marker, with what its name has in common with its other spellings.
  func readNames(
    recordsInodes: Bool,
    _ body: (_ name: [UInt8], _ key: [UInt8], _ listed: Listed) throws(Errno) -> Void
  ) throws(Errno) -> FoldedNames {
    var names = FoldedNames()
    try forEachEntry { entry throws(Errno) in
      let name = Array(UnsafeRawBufferPointer(start: entry.name, count: entry.nameLength))
      if WhiteoutMarker.isMarker(entry.name) {
        return names.hide(NameFolding.key(of: WhiteoutMarker.name(hiddenBy: name)))
      }
      guard let found = try listed(entry, recordsInodes: recordsInodes) else { return }
      let key = NameFolding.key(of: name)
      if found.isWhiteout { names.hide(key) } else { names.add(name, key: key) }
      try body(name, key, found)
    }
    return names
  }

  /// Keeps the names of the directory.
  /// - Parameter state: of the directory before they were read.
  func keep(_ names: FoldedNames, readIn state: SpellingIndex.State, _ spellings: SpellingIndex) {
    spellings.keep(names, readIn: state)
    gate.collisions.record(names.collisions.count, in: identity)
  }

  func spellingState(_ spellings: SpellingIndex) throws(Errno) -> SpellingIndex.State {
    let changes = spellings.changeCount
    var generation: UInt32 = 0
    if case .archive(let archive) = backing { generation = archive.current.source.generation }
    let attributes = try attributes()
    return SpellingIndex.State(
      modified: attributes.modified, changed: attributes.changed, generation: generation, changes: changes)
  }
}
