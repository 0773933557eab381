import Fuse
import Layers

/// The further names of files with several hard links. They are rare, so they are stored apart from the nodes.
struct HardLinkNames {
  /// Where case does not count, by what the spellings have in common.
  private var byKey: [EntryKey: Set<UInt32>] = [:]
  /// Each node's names, with the index of the name's record.
  private var byNode: [UInt32: [EntryKey: UInt32]] = [:]
  /// The names of `byKey` in each directory.
  private var byParent: [NodeID: Set<[UInt8]>] = [:]

  private let isRecorded: Bool
  private let foldsNames: Bool
  private var firstUnused: UInt32 = 0
  private var unused: [UInt32] = []
  /// What is not recorded yet.
  private var added: [(slot: UInt32, key: EntryKey, index: UInt32)] = []
  private var removed: [UInt32] = []

  init(isRecorded: Bool = false, foldsNames: Bool = false) {
    self.isRecorded = isRecorded
    self.foldsNames = foldsNames
  }

  /// The nodes that have a name, in any spelling.
  func nodes(at key: EntryKey) -> [UInt32] { byKey.isEmpty ? [] : Array(byKey[folded(key)] ?? []) }

  private func folded(_ key: EntryKey) -> EntryKey {
    foldsNames ? EntryKey(parent: key.parent, name: NameFolding.key(of: key.name)) : key
  }

  /// Whether two names are spellings of one.
  static func areEqual(_ left: EntryKey, _ right: EntryKey) -> Bool {
    left.parent == right.parent && NameFolding.areEqual(left.name, right.name)
  }

  func names(in parent: NodeID) -> Set<[UInt8]> { byParent[parent] ?? [] }

  func names(of slot: UInt32) -> [EntryKey] { byNode[slot].map { Array($0.keys) } ?? [] }

  func first(of slot: UInt32) -> EntryKey? { byNode[slot]?.keys.first }

  mutating func add(_ slot: UInt32, at key: EntryKey) {
    if byNode[slot]?[key] != nil { return }
    let index = unused.popLast() ?? firstUnused
    if index == firstUnused { firstUnused += 1 }
    insert(slot, at: key, index)
    if isRecorded { added.append((slot, key, index)) }
  }

  private mutating func insert(_ slot: UInt32, at key: EntryKey, _ index: UInt32) {
    byKey[folded(key), default: []].insert(slot)
    byParent[key.parent, default: []].insert(key.name)
    byNode[slot, default: [:]][key] = index
  }

  /// - Returns: false if the node did not have the name.
  mutating func remove(_ slot: UInt32, at key: EntryKey) -> Bool {
    guard let index = byNode[slot]?.removeValue(forKey: key) else { return false }
    if isRecorded { removed.append(index) } else { unused.append(index) }
    let hasSpelling = foldsNames && names(of: slot).contains { Self.areEqual($0, key) }
    if byNode[slot]?.isEmpty == true { byNode[slot] = nil }
    if !hasSpelling { removeFromKey(slot, folded(key)) }
    removeFromParent(key)
    return true
  }

  private mutating func removeFromKey(_ slot: UInt32, _ key: EntryKey) {
    byKey[key]?.remove(slot)
    if byKey[key]?.isEmpty == true { byKey[key] = nil }
  }

  /// Removes a name from its directory's, unless another node has it.
  private mutating func removeFromParent(_ key: EntryKey) {
    if nodes(at: key).contains(where: { byNode[$0]?[key] != nil }) { return }
    byParent[key.parent]?.remove(key.name)
    if byParent[key.parent]?.isEmpty == true { byParent[key.parent] = nil }
  }

  mutating func remove(_ slot: UInt32) {
    for key in names(of: slot) { _ = remove(slot, at: key) }
  }

  // MARK: - Records

  var hasChanged: Bool { !added.isEmpty || !removed.isEmpty }

  /// Records the names that were added and are still there.
  mutating func recordAdditions(in memory: NodeMemory, _ names: inout NameArena) {
    for (slot, key, index) in added where byNode[slot]?[key] == index {
      memory.write(
        NodeMemory.Link(slot: slot, name: names.add(key.name), parent: key.parent.rawValue), at: index)
    }
    added.removeAll(keepingCapacity: true)
  }

  mutating func recordRemovals(in memory: NodeMemory, _ names: inout NameArena) {
    for index in removed {
      let link = index < memory.linkCount ? memory.link(at: index) : NodeMemory.Link()
      if link.slot != 0 {
        memory.removeLink(at: index)
        names.remove(link.name)
      }
      unused.append(index)
    }
    removed.removeAll(keepingCapacity: true)
  }

  /// Takes over what a predecessor has recorded.
  /// - Returns: the names in use.
  mutating func restore(from memory: NodeMemory, _ names: NameArena) -> [UInt32] {
    firstUnused = memory.linkCount
    var used: [UInt32] = []
    for index in 0..<memory.linkCount {
      let link = memory.link(at: index)
      if link.slot == 0 {
        unused.append(index)
      } else {
        let key = EntryKey(parent: NodeID(rawValue: link.parent), name: names.name(at: link.name))
        insert(link.slot, at: key, index)
        used.append(link.name)
      }
    }
    return used
  }
}
