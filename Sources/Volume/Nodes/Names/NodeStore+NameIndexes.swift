import Fuse
import Layers
import Posix

/// Lookups in directories of many layers, which ask only the layers that have something of the name.
extension NodeStore {
  /// The most directory entries that a lookup reads to make an index; a listing reads all of them anyway.
  private static let mostListedByLookup = 16_384

  /// As `MergedDirectory.lookup`, in a directory's present parts.
  func lookUp(
    _ name: CName, in directory: NodeID, _ merged: MergedDirectory, from layer: Int = 0,
    isLikelyDirectory: Bool = false
  ) throws(Errno) -> Entry? {
    guard let places = places(of: name, in: directory, merged) else {
      return try merged.lookup(name, from: layer, isLikelyDirectory: isLikelyDirectory)
    }
    if places.isEmpty { return nil }
    let found = try merged.lookup(
      name, from: layer, isLikelyDirectory: isLikelyDirectory, among: places)
    // An entry that has just gone may have come into another layer before.
    if let found { return found }
    return try merged.lookup(name, from: layer, isLikelyDirectory: isLikelyDirectory)
  }

  /// What a listed name stands for, while the listing's layer for it is still right.
  /// - Returns: nil where it has vanished.
  func entry(
    _ item: Listing.Item, named name: CName, in directory: NodeID, _ merged: MergedDirectory
  ) throws(Errno) -> Entry? {
    // A character device can have become a whiteout.
    if item.kind != .directory, item.kind != .characterDevice, !merged.isTable(name),
      let attributes = try? merged.solePart(of: Int(item.layer))?.attributes(of: name),
      attributes.kind == item.kind
    {
      return .file(layer: Int(item.layer), attributes)
    }
    return try lookUp(
      name, in: directory, merged, from: Int(item.layer), isLikelyDirectory: item.kind == .directory)
  }

  /// Lists a directory's present parts, and keeps an index of the names.
  /// - Throws: as `MergedDirectory.list`.
  func list(
    _ merged: MergedDirectory, _ directory: NodeID, atMost limit: Int = .max
  ) throws(Errno) -> Listing {
    guard merged.isIndexable, areWatched(merged, of: directory), let making = indexes.begin(directory, merged)
    else { return try merged.list(atMost: limit) }
    var index: NameIndex?
    defer { indexes.end(making, index, isWorthRetrying: true) }
    let (listing, made) = try merged.listIndexing(atMost: limit)
    index = made
    return listing
  }

  /// The parts that have something of a name, as a lookup would find now.
  /// - Returns: nil if they are not known.
  func places(
    of name: CName, in directory: NodeID, _ merged: MergedDirectory
  ) -> [NameIndex.Place]? {
    guard merged.serialNumber != 0, let watcher else { return nil }
    guard indexes.has(directory, merged) else {
      makeIndexIfWanted(of: directory, merged)
      return nil
    }
    // In this order: what changed before this lookup began is recorded in the index, if the watches still stand.
    guard watcher.hasHandledAll, let places = indexes.places(of: name, in: directory, merged),
      areWatched(merged, of: directory)
    else { return nil }
    return places
  }

  /// Whether no layer below one has anything of a directory's name. The directory's part in that layer must be watched.
  /// - Parameter above: in which its parts were looked up.
  func hasNothing(below layer: Int, of node: NodeID, in above: MergedDirectory?) -> Bool {
    guard let above, above.serialNumber != 0, let (parent, name) = try? parent(of: node),
      let places = try? withCName(name, { name throws(Errno) in places(of: name, in: parent, above) })
    else { return false }
    return places.allSatisfy { above.parts[$0.part].layer <= layer }
  }

  private func makeIndexIfWanted(of directory: NodeID, _ merged: MergedDirectory) {
    guard merged.isIndexable, areWatched(merged, of: directory), indexes.recordLookup(in: directory, merged),
      let making = indexes.begin(directory, merged)
    else { return }
    let index = try? merged.nameIndex(atMost: Self.mostListedByLookup)
    indexes.end(making, index, isWorthRetrying: index != nil)
  }

  /// Whether watches report every change of the names in a directory's parts, since these were resolved.
  private func areWatched(_ merged: MergedDirectory, of directory: NodeID) -> Bool {
    table.withLock { table in
      guard let state = try? Self.state(of: directory, table) else { return false }
      return state.merged === merged && state.isCovered && !state.needsRefresh
        && table.namelessDirectory(directory) == nil
    }
  }
}
