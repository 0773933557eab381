import Containers
import Fuse
import Layers

/// Names where case does not count. A directory has a node for each spelling that the kernel knows, since the kernel
/// gives a directory's inode one dentry only; a file has one node, and its spellings are like hard links.
extension NodeTable {
  var foldsNames: Bool { spellings != nil }

  /// The hash by which `entries` finds a name.
  func hash(_ name: [UInt8], in parent: UInt32) -> UInt32 {
    NodeHash.of(foldsNames ? NameFolding.key(of: name) : name, in: parent)
  }

  /// Whether a node was last looked up in a directory by another spelling of a name.
  func isSpelling(_ name: [UInt8], of slot: UInt32, in parent: UInt32) -> Bool {
    foldsNames && nodes[Int(slot)].parent == parent && NameFolding.areEqual(self.name(of: slot), name)
  }

  /// The same for the whole path: the directory may be known by another spelling, too.
  func isPathSpelling(_ name: [UInt8], of slot: UInt32, in parent: UInt32) -> Bool {
    // The spellings of a directory's path have one number.
    foldsNames && nodes[Int(nodes[Int(slot)].parent)].inodeNumber == nodes[Int(parent)].inodeNumber
      && NameFolding.areEqual(self.name(of: slot), name)
  }

  /// The spellings of a name by which the kernel may know nodes.
  func spellings(of name: [UInt8], in parent: UInt32) -> Set<[UInt8]> {
    if !foldsNames { return [] }
    let key = EntryKey(parent: number(of: parent), name: name)
    var found = Set(
      entries.all(hash(name, in: parent)) { isSpelling(name, of: $0, in: parent) }.map { self.name(of: $0) })
    for slot in hardLinks.nodes(at: key) {
      found.formUnion(hardLinks.names(of: slot).filter { HardLinkNames.areEqual($0, key) }.map(\.name))
    }
    return found
  }

  /// Keeps the spellings of a name that its nodes are about to lose, so that a successor knows them if this process dies
  /// before the kernel has forgotten them.
  /// - Returns: the names that the kernel has to forget.
  mutating func keepSpellings(of name: [UInt8], in parent: UInt32) -> Set<EntryKey> {
    guard let spellings else { return [] }
    let directory = number(of: parent)
    var forgotten = Set(self.spellings(of: name, in: parent).map { EntryKey(parent: directory, name: $0) })
    if memory == nil { return forgotten }
    for evicted in forgotten.flatMap({ spellings.add($0) }) {
      removeSpelling(evicted)
      forgotten.insert(evicted)
    }
    return forgotten
  }

  /// Removes a name from the further ones of a node, in any spelling.
  mutating func removeHardLinks(_ slot: UInt32, at key: EntryKey) {
    let spellings = foldsNames ? hardLinks.names(of: slot).filter { HardLinkNames.areEqual($0, key) } : [key]
    for spelling in spellings { _ = hardLinks.remove(slot, at: spelling) }
  }

  /// Forgets a spelling that the kernel is about to forget.
  mutating func removeSpelling(_ key: EntryKey) {
    for slot in hardLinks.nodes(at: key) { _ = hardLinks.remove(slot, at: key) }
  }
}
