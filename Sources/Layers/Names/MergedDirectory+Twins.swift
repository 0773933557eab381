import Posix

/// Twins: directories of one layer that are one name where case does not count, as `UI` and `ui`. They are one directory.
///
/// A merged directory has all of them as parts. Of entries that are one name, in one of them or in several, the first counts
/// that has the very spelling, or else the first by bytes; where that is a directory, all directories of the name are twins.
extension MergedDirectory {
  /// The parts of a layer; empty if it has none.
  public func parts(of layer: Int) -> ArraySlice<LayerDirectory> {
    guard let first = parts.firstIndex(where: { $0.layer == layer }) else { return [] }
    return parts[first..<end(ofLayerAt: first)]
  }

  /// The only part of a layer; nil if it has none, or several.
  public func solePart(of layer: Int) -> LayerDirectory? {
    let index = parts.firstIndex { $0.layer == layer }
    return index.flatMap { hasTwins && end(ofLayerAt: $0) > $0 + 1 ? nil : parts[$0] }
  }

  /// The part of a layer that has an entry, found by a name before; any of the layer if none has it.
  /// - Parameter identity: of the entry; nil for the one that a lookup finds.
  public func part(of layer: Int, with name: CName, _ identity: FileIdentity?) -> LayerDirectory? {
    guard let first = parts.firstIndex(where: { $0.layer == layer }) else { return nil }
    if !hasTwins { return parts[first] }
    let range = first..<end(ofLayerAt: first)
    if let identity {
      let holder = parts[range].first { part in
        (try? part.attributes(of: name, identity: identity)) != nil
      }
      return holder ?? parts[first]
    }
    let entry = try? entries(named: [UInt8](bytesOf: name), in: range).first
    return entry?.parent ?? parts[first]
  }

  /// Where a layer has an entry that was found by a name.
  /// - Parameter identity: of the entry; nil for the one that a lookup finds.
  /// - Returns: the part that has it, and its spelling there; nil if it has gone.
  public func place(
    of identity: FileIdentity?, _ name: [UInt8], in layer: Int
  ) throws(Errno) -> (parent: FileIdentity, name: [UInt8])? {
    guard let first = parts.firstIndex(where: { $0.layer == layer }) else { return nil }
    let entries = try entries(named: name, in: first..<end(ofLayerAt: first))
    var found = entries.first
    if let identity, entries.count > 1 {
      for entry in entries {
        let status = try? withCName(entry.name) { name throws(Errno) in
          try entry.parent.attributesExact(of: name)
        }
        if status?.identity == identity { found = entry }
      }
    }
    return found.map { ($0.parent.identity, $0.name) }
  }

  /// Whether a part is the first one of its layer.
  @inline(__always)
  func isFirst(_ index: Int) -> Bool {
    !hasTwins || index == 0 || parts[index - 1].layer != parts[index].layer
  }

  /// The index after the last part of a layer.
  @inline(__always)
  func end(ofLayerAt index: Int) -> Int {
    if !hasTwins { return index + 1 }
    return parts[index...].firstIndex { $0.layer != parts[index].layer } ?? parts.count
  }

  /// The spelling that listings show, for the name of a directory that has twins in the top layer; any other name stays as it
  /// is.
  public func spelling(of name: [UInt8], ofTwins found: Entry?) throws(Errno) -> [UInt8] {
    guard case .directory(let directory, _) = found, directory.top.layer == top.layer,
      directory.end(ofLayerAt: 0) > 1
    else { return name }
    return try shownSpelling(of: name) ?? name
  }

  // MARK: - Lookup

  /// What a layer has of a name.
  /// - Parameter range: of the layer's parts.
  /// - Returns: what is found, and the twins of a directory, which come after it.
  @inline(__always)
  func find(
    _ name: CName, in range: Range<Int>, isLikelyDirectory: Bool
  ) throws(Errno) -> (LayerDirectory.Found, twins: [(LayerDirectory, FileStatus)]) {
    let part = parts[range.lowerBound]
    if range.count == 1 {
      let found = try part.find(name, isLikelyDirectory: isLikelyDirectory)
      guard let spellings = part.spellings, case .directory = found, try part.hasSeveral(name, spellings)
      else { return (found, []) }
    }
    return try findAmongTwins(name, in: range, isLikelyDirectory: isLikelyDirectory)
  }

  private func findAmongTwins(
    _ name: CName, in range: Range<Int>, isLikelyDirectory: Bool
  ) throws(Errno) -> (LayerDirectory.Found, twins: [(LayerDirectory, FileStatus)]) {
    let bytes = [UInt8](bytesOf: name)
    // Most are asked for as they are spelled: then no names need be read for files.
    for part in parts[range] {
      let found = try part.findExact(name, isLikelyDirectory: isLikelyDirectory)
      if case .file = found { return (found, []) }
      if case .directory = found { break }
    }
    // The bound guards against names that are changed endlessly.
    for _ in 0..<64 {
      let entries = try entries(named: bytes, in: range)
      guard let first = entries.first else { return (.nothing, []) }
      switch try first.find() {
      case .nothing, .whiteout: first.parent.recordNameChange()
      case .file(let status): return (.file(status), [])
      case .directory:
        let directories = try directories(among: entries, as: bytes)
        guard let (first, status) = directories.first else { continue }
        return (.directory(first, status), Array(directories.dropFirst()))
      }
    }
    throw .ioError
  }

  /// An entry of one of a layer's parts, in its own spelling.
  struct SpelledEntry {
    let parent: LayerDirectory
    let name: [UInt8]

    func find() throws(Errno) -> LayerDirectory.Found {
      try withCName(name) { name throws(Errno) in
        try parent.findExact(name, isLikelyDirectory: true)
      }
    }
  }

  /// The entries of a layer that are a name, the one that counts first.
  /// - Parameter range: of the layer's parts.
  func entries(named name: [UInt8], in range: Range<Int>) throws(Errno) -> [SpelledEntry] {
    let key = NameFolding.key(of: name)
    var found: [SpelledEntry] = []
    for part in parts[range] {
      guard let spellings = part.spellings else { return [SpelledEntry(parent: part, name: name)] }
      for entry in try part.foldedNames(spellings).entries(key) {
        found.append(SpelledEntry(parent: part, name: entry))
      }
    }
    return Self.sorted(found, first: name)
  }

  /// Sorts by bytes; one spelling comes before the others. What has one spelling keeps the order of the parts.
  private static func sorted(_ entries: [SpelledEntry], first: [UInt8]) -> [SpelledEntry] {
    entries.enumerated().sorted { left, right in
      if (left.element.name == first) != (right.element.name == first) { return left.element.name == first }
      if left.element.name == right.element.name { return left.offset < right.offset }
      return left.element.name.lexicographicallyPrecedes(right.element.name)
    }.map(\.element)
  }

  /// The directories among entries that are one name, in the order in which they count.
  ///
  /// A node for each spelling has the directory of its own spelling first. Where all spellings have one node, the spelling that
  /// listings show comes first, in which entries are made.
  private func directories(
    among entries: [SpelledEntry], as name: [UInt8]
  ) throws(Errno) -> [(LayerDirectory, FileStatus)] {
    var entries = entries
    if entries.count > 1, top.gate.sharesSpellings {
      entries = Self.sorted(entries, first: (try? shownSpelling(of: name)) ?? name)
    }
    var directories: [(LayerDirectory, FileStatus)] = []
    for entry in entries {
      if case .directory(let directory, let status) = try entry.find() {
        directories.append((directory, status))
      }
    }
    return directories
  }

  /// Whether one of a layer's parts hides a name in the layers below.
  @inline(__always)
  func hasWhiteoutMarker(_ name: CName, length: Int, in range: Range<Int>) throws(Errno) -> Bool {
    for index in range where try parts[index].hasWhiteoutMarker(name, length: length) { return true }
    return false
  }
}

extension LayerDirectory {
  /// Whether several entries are a name. One that may not be listed is taken to have no others.
  func hasSeveral(_ name: CName, _ spellings: SpellingIndex) throws(Errno) -> Bool {
    do throws(Errno) {
      let names = try foldedNames(spellings)
      return !names.collisions.isEmpty
        && names.collisions[NameFolding.key(of: [UInt8](bytesOf: name))] != nil
    } catch {
      if error == .permissionDenied { return false }
      throw error
    }
  }

  /// The directories of a name; several where they are one.
  func directories(named name: CName) throws(Errno) -> [LayerDirectory] {
    let (found, twins) = try MergedDirectory(parts: [self]).find(name, in: 0..<1, isLikelyDirectory: true)
    guard case .directory(let first, _) = found else { return [] }
    return [first] + twins.map(\.0)
  }
}
