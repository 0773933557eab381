import Fuse
import Layers
import Posix

/// Names where case does not count.
extension NodeStore {
  /// Records a spelling that the next reply gives to the kernel.
  func recordSpelling(_ name: [UInt8], in directory: NodeID) {
    guard let spellings else { return }
    for evicted in spellings.add(EntryKey(parent: directory, name: name)) {
      table.withLock { $0.removeSpelling(evicted) }
      watcher?.spellingWasEvicted(evicted)
    }
  }

  /// Whether two names are spellings of one.
  func areSpellings(_ left: EntryKey, _ right: EntryKey) -> Bool {
    spellings != nil && left.parent == right.parent && NameFolding.areEqual(left.name, right.name)
  }

  /// Records the spellings by which the kernel knows entries after a change, where the layer has others.
  func recordSharedSpellings(_ keys: [EntryKey]) {
    if spellings == nil { return }
    for key in keys { recordSpelling(key.name, in: key.parent) }
  }

  /// Records a spelling that has found an entry, if the kernel may know others of the name.
  func recordFoundSpelling(_ name: CName, in directory: NodeID) {
    if spellings == nil { return }
    let bytes = [UInt8](bytesOf: name)
    let isAlone = table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return true }
      return table.spellings(of: bytes, in: slot).subtracting([bytes]).isEmpty
    }
    if !isAlone { recordSpelling(bytes, in: directory) }
  }

  /// The other spellings of a name that the kernel may have cached.
  func otherSpellings(of name: [UInt8], in directory: NodeID) -> Set<[UInt8]> {
    guard let spellings else { return [] }
    let known = table.withLock { table -> Set<[UInt8]> in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.spellings(of: name, in: slot)
    }
    return known.union(spellings.spellings(of: name, in: directory)).subtracting([name])
  }

  /// The name in which programs see an entry of a layer. A name that is gone is the one by which the kernel knew it.
  func shownName(of name: [UInt8], in directory: NodeID) -> [UInt8] {
    if spellings == nil { return name }
    if let shown = try? merged(of: directory).shownSpelling(of: name) { return shown }
    let known = otherSpellings(of: name, in: directory)
    return known.min { $0.lexicographicallyPrecedes($1) } ?? name
  }

  /// The names from the root to a node, in the spellings of the layer that it is in; a name that the layer has lost is as
  /// the kernel knows it.
  /// - Throws: ESTALE; what reading a directory of the layer throws.
  func path(of node: NodeID, spelledIn layer: Int) throws(Errno) -> [[UInt8]] {
    let names = try table.withLock { table throws(Errno) in
      table.keys(upTo: try table.slot(of: node))
    }
    if spellings == nil { return names.map(\.name) }
    var wanted =
      try isDirectory(node) ? merged(of: node).parts(of: layer).first?.identity : identity(of: node)
    var path: [[UInt8]] = []
    // From the end on: several directories of the layer can be one name, and one of them has the entry.
    for key in names.reversed() {
      let found = try merged(of: key.parent).place(of: wanted, key.name, in: layer)
      path.append(found?.name ?? key.name)
      wanted = found?.parent
    }
    return path.reversed()
  }
}
