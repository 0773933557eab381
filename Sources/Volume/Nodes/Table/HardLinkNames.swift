import Fuse

/// The further names of files with several hard links. They are rare, so they are stored apart from the nodes.
struct HardLinkNames {
  private var byKey: [EntryKey: Set<UInt32>] = [:]
  private var byNode: [UInt32: Set<EntryKey>] = [:]
  /// The names of `byKey` in each directory.
  private var byParent: [NodeID: Set<[UInt8]>] = [:]

  func nodes(at key: EntryKey) -> [UInt32] { byKey.isEmpty ? [] : Array(byKey[key] ?? []) }

  func names(in parent: NodeID) -> Set<[UInt8]> { byParent[parent] ?? [] }

  func first(of slot: UInt32) -> EntryKey? { byNode[slot]?.first }

  mutating func add(_ slot: UInt32, at key: EntryKey) {
    byKey[key, default: []].insert(slot)
    byParent[key.parent, default: []].insert(key.name)
    byNode[slot, default: []].insert(key)
  }

  /// - Returns: false if the node did not have the name.
  mutating func remove(_ slot: UInt32, at key: EntryKey) -> Bool {
    guard byNode[slot]?.remove(key) != nil else { return false }
    if byNode[slot]?.isEmpty == true { byNode[slot] = nil }
    byKey[key]?.remove(slot)
    if byKey[key]?.isEmpty == true {
      byKey[key] = nil
      byParent[key.parent]?.remove(key.name)
      if byParent[key.parent]?.isEmpty == true { byParent[key.parent] = nil }
    }
    return true
  }

  mutating func remove(_ slot: UInt32) {
    for key in byNode[slot] ?? [] { _ = remove(slot, at: key) }
  }
}
