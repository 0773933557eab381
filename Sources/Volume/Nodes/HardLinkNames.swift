import Fuse

/// A name of a directory. The directory is named by its number, which is never given twice, so that a place
/// does not outlive its directory.
struct EntryKey: Hashable {
  let parent: NodeID
  let name: [UInt8]
}

/// Further names of files that have several: rare, so kept apart from the nodes.
struct HardLinkNames {
  private var byPlace: [EntryKey: Set<UInt32>] = [:]
  private var byNode: [UInt32: Set<EntryKey>] = [:]

  func nodes(at place: EntryKey) -> [UInt32] { byPlace.isEmpty ? [] : Array(byPlace[place] ?? []) }

  func names(in parent: NodeID) -> [[UInt8]] {
    byPlace.isEmpty ? [] : byPlace.keys.filter { $0.parent == parent }.map(\.name)
  }

  func first(of slot: UInt32) -> EntryKey? { byNode[slot]?.first }

  mutating func add(_ slot: UInt32, at place: EntryKey) {
    byPlace[place, default: []].insert(slot)
    byNode[slot, default: []].insert(place)
  }

  /// Takes one name of a node out; answers whether it was there.
  mutating func remove(_ slot: UInt32, at place: EntryKey) -> Bool {
    guard byNode[slot]?.remove(place) != nil else { return false }
    if byNode[slot]?.isEmpty == true { byNode[slot] = nil }
    byPlace[place]?.remove(slot)
    if byPlace[place]?.isEmpty == true { byPlace[place] = nil }
    return true
  }

  /// Takes all names of a node out.
  mutating func remove(_ slot: UInt32) {
    for place in byNode[slot] ?? [] { _ = remove(slot, at: place) }
  }
}
