import Fuse
import Layers
import Posix

/// Directories that have lost their names while programs stand in them or have mounted them elsewhere.
extension NodeStore {
  /// nil for a directory with a name, and for one that has lost it under a predecessor.
  func namelessDirectory(_ node: NodeID) -> NamelessDirectory? {
    table.withLock { $0.namelessDirectory(node) }
  }

  /// Gives a directory that was removed other parts.
  func replaceRemovedDirectory(_ node: NodeID, by copy: MergedDirectory) {
    table.withLock { table in
      if let slot = try? table.slot(of: node) { table.namelessDirectories[slot]?.parts = copy }
    }
  }

  /// Takes a name from the directory that had it, if a lookup has found another one there. The invalidation, which would do
  /// it later, cannot mend a reply that gives the name to the former directory once more.
  ///
  /// Not from a directory of the upper layer: a lookup from before a change of ours would take the name from what the
  /// change has put there.
  func takeName(_ name: [UInt8], in parent: NodeID, fromOtherThan found: FoundDirectory) {
    guard let watcher, found.merged?.missing == nil, LayerAccess.current != .skipping else { return }
    let key = EntryKey(parent: parent, name: name)
    guard let replaced = replacedDirectory(at: key, by: found),
      !isWritable || !replaced.directory.parts.isInUpperLayer,
      take(key, from: replaced.node, by: found, isDeleted: isDeleted(replaced.directory))
    else { return }
    watcher.directoryWasRenumbered(replaced.node)
  }

  /// Takes a name from a directory that was resolved again, if another directory or none was found there.
  /// - Parameter key: the name by which it was looked for.
  /// - Returns: whether the directory was deleted; nil if it is still the same.
  func takeName(_ key: EntryKey, from node: NodeID, ifReplacedBy resolved: ResolvedDirectory) -> Bool? {
    // While the mount itself changes the name, the table is not up to date.
    if resolved.merged?.missing != nil || LayerAccess.current == .skipping { return nil }
    if lookupObserver?.isChanging(key) == true { return nil }
    let found = resolved.found
    guard let replaced = replacedDirectory(at: key, by: found), replaced.node == node else { return nil }
    let isDeleted = isDeleted(replaced.directory)
    return take(key, from: node, by: found, isDeleted: isDeleted) ? isDeleted : nil
  }

  private func replacedDirectory(
    at key: EntryKey, by found: FoundDirectory
  ) -> (node: NodeID, directory: NamelessDirectory)? {
    table.withLock { table in
      guard let parent = try? table.slot(of: key.parent) else { return nil }
      let slot = table.directory(key.name, in: parent)
      return table.replacedDirectory(slot, by: found).map { (table.number(of: slot), $0) }
    }
  }

  /// Whether no path of its layers leads to a directory any more.
  private func isDeleted(_ directory: NamelessDirectory) -> Bool {
    directory.parts.parts.allSatisfy { (try? $0.attributes())?.links == 0 }
  }

  /// - Parameter isDeleted: then it has nothing to show, and need not be held open.
  /// - Returns: false if another request was faster.
  private func take(
    _ key: EntryKey, from node: NodeID, by found: FoundDirectory, isDeleted: Bool
  ) -> Bool {
    let released = table.withLock { table -> [AnyObject]? in
      guard let slot = try? table.slot(of: node), let parent = try? table.slot(of: key.parent),
        table.isNamed(slot, key.name, in: parent), let replaced = table.replacedDirectory(slot, by: found)
      else { return nil }
      let (above, former) = (table[parent].inodeNumber, table[slot].inodeNumber)
      let released = table.takeName(from: slot, keeping: isDeleted ? nil : replaced)
      // The directory that has the name now gets the former number.
      if former == inodeNumber(ofDirectory: key.name, in: above) {
        renumber(slot, inodeNumber(ofDirectory: table.name(of: slot), in: above), &table)
      }
      return released
    }
    withExtendedLifetime(released) {}
    return released != nil
  }

  /// Gives a directory that was renamed in its layer its new name, under which a lookup has found it.
  /// - Returns: what it held; nil if no such directory was nameless.
  func rename(
    _ parts: [LayerDirectory], to name: [UInt8], in parent: UInt32, inodeNumber: UInt64,
    _ table: inout NodeTable
  ) -> NamelessDirectory? {
    guard let (slot, directory) = table.rename(parts, to: name, in: parent) else { return nil }
    renumber(slot, inodeNumber, &table)
    return directory
  }

  /// Gives a directory another inode number, and those below whose numbers follow from it.
  private func renumber(_ slot: UInt32, _ number: UInt64, _ table: inout NodeTable) {
    var pending = [(slot, number)]
    while let (slot, number) = pending.popLast() {
      let former = table[slot].inodeNumber
      table[slot].inodeNumber = number
      for child in table.childDirectories(of: slot) {
        let name = table.name(of: child)
        guard table[child].inodeNumber == inodeNumber(ofDirectory: name, in: former) else { continue }
        pending.append((child, inodeNumber(ofDirectory: name, in: number)))
      }
    }
  }

  /// A directory's name; nil for the root.
  func nameKey(ofDirectory node: NodeID) -> EntryKey? {
    if node == .root { return nil }
    return (try? parent(of: node)).map { EntryKey(parent: $0.directory, name: $0.name) }
  }
}
