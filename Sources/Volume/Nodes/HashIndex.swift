import Fuse
import Posix

/// By what nodes are found in a hash table.
enum NodeHash {
  /// Files by the layer and identity that they have.
  static func of(_ identity: FileIdentity, layer: UInt16) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(identity)
    hasher.combine(layer)
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }

  /// Nodes by their parent and name.
  static func of(_ name: [UInt8], in parent: UInt32) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(parent)
    name.withUnsafeBytes { hasher.combine(bytes: $0) }
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}

/// A hash table of nodes' slots, chained, so that it costs eight bytes a slot and four a bucket. The hashes are
/// kept, so that the nodes, which lie scattered, need not be looked at when it grows.
struct HashIndex {
  private struct Link {
    /// The next slot of the chain; 0 ends.
    var next: UInt32 = 0
    var hash: UInt32 = 0
  }

  /// First slots of the chains; a power of two of them.
  private var buckets: [UInt32] = Array(repeating: 0, count: 64)
  /// By slot.
  private var links: [Link] = []
  private var count = 0

  /// The first slot of a hash that matches; 0 if none does.
  @inline(__always)
  func first(_ hash: UInt32, where matches: (UInt32) -> Bool) -> UInt32 {
    var slot = buckets[bucket(hash)]
    while slot != 0, links[Int(slot)].hash != hash || !matches(slot) { slot = links[Int(slot)].next }
    return slot
  }

  /// The slots of a hash that match.
  func all(_ hash: UInt32, where matches: (UInt32) -> Bool) -> [UInt32] {
    var found: [UInt32] = []
    var slot = buckets[bucket(hash)]
    while slot != 0 {
      if links[Int(slot)].hash == hash, matches(slot) { found.append(slot) }
      slot = links[Int(slot)].next
    }
    return found
  }

  /// Adds a slot.
  mutating func insert(_ slot: UInt32, _ hash: UInt32) {
    while links.count <= slot { links.append(Link()) }
    links[Int(slot)].hash = hash
    count += 1
    if count > buckets.count { grow() }
    push(slot)
  }

  /// Takes a slot out, which must be there.
  mutating func remove(_ slot: UInt32) {
    let bucket = bucket(links[Int(slot)].hash)
    var before = buckets[bucket]
    if before == slot {
      buckets[bucket] = links[Int(slot)].next
    } else {
      while links[Int(before)].next != slot { before = links[Int(before)].next }
      links[Int(before)].next = links[Int(slot)].next
    }
    count -= 1
  }

  private func bucket(_ hash: UInt32) -> Int { Int(hash) & (buckets.count - 1) }

  private mutating func push(_ slot: UInt32) {
    let bucket = bucket(links[Int(slot)].hash)
    links[Int(slot)].next = buckets[bucket]
    buckets[bucket] = slot
  }

  private mutating func grow() {
    let former = buckets
    buckets = Array(repeating: 0, count: former.count * 2)
    for first in former {
      var slot = first
      while slot != 0 {
        let next = links[Int(slot)].next
        push(slot)
        slot = next
      }
    }
  }
}

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
