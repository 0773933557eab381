import Fuse
import Posix

/// By what nodes are found in a hash table.
protocol NodeHash {
  static func hash(_ node: Node, _ names: NameArena) -> UInt64
}

/// Files by the layer and identity that they have.
enum ByIdentity: NodeHash {
  static func hash(_ node: Node, _ names: NameArena) -> UInt64 { hash(node.identity, layer: node.layer) }

  static func hash(_ identity: FileIdentity, layer: UInt16) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(identity)
    hasher.combine(layer)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }
}

/// Nodes by their parent and name.
enum ByPlace: NodeHash {
  static func hash(_ node: Node, _ names: NameArena) -> UInt64 {
    names.withName(at: node.name) { hash($0, node.parent) }
  }

  static func hash(_ name: [UInt8], in parent: UInt32) -> UInt64 {
    name.withUnsafeBytes { hash($0, parent) }
  }

  private static func hash(_ name: UnsafeRawBufferPointer, _ parent: UInt32) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(parent)
    hasher.combine(bytes: name)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }
}

/// A hash table of nodes' slots, chained, so that it costs four bytes a slot and four a bucket.
struct NodeChains<Hash: NodeHash> {
  /// First slots of the chains; a power of two of them.
  private var buckets: [UInt32] = Array(repeating: 0, count: 64)
  /// By slot, the next one of its chain; 0 ends.
  private var links: [UInt32] = []
  private var count = 0

  /// The first slot of a hash's chain that matches; 0 if none does.
  @inline(__always)
  func first(_ hash: UInt64, where matches: (UInt32) -> Bool) -> UInt32 {
    var slot = buckets[bucket(hash)]
    while slot != 0, !matches(slot) { slot = links[Int(slot)] }
    return slot
  }

  /// The slots of a hash's chain that match.
  func all(_ hash: UInt64, where matches: (UInt32) -> Bool) -> [UInt32] {
    var found: [UInt32] = []
    var slot = buckets[bucket(hash)]
    while slot != 0 {
      if matches(slot) { found.append(slot) }
      slot = links[Int(slot)]
    }
    return found
  }

  /// Adds a slot.
  mutating func insert(_ slot: UInt32, _ nodes: [Node], _ names: NameArena) {
    while links.count <= slot { links.append(0) }
    count += 1
    if count > buckets.count { grow(nodes, names) }
    push(slot, Hash.hash(nodes[Int(slot)], names))
  }

  /// Takes a slot out, which must still have the hash that it was added with.
  mutating func remove(_ slot: UInt32, _ nodes: [Node], _ names: NameArena) {
    let bucket = bucket(Hash.hash(nodes[Int(slot)], names))
    var before = buckets[bucket]
    if before == slot {
      buckets[bucket] = links[Int(slot)]
    } else {
      while links[Int(before)] != slot { before = links[Int(before)] }
      links[Int(before)] = links[Int(slot)]
    }
    count -= 1
  }

  private func bucket(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash) & (buckets.count - 1) }

  private mutating func push(_ slot: UInt32, _ hash: UInt64) {
    let bucket = bucket(hash)
    links[Int(slot)] = buckets[bucket]
    buckets[bucket] = slot
  }

  private mutating func grow(_ nodes: [Node], _ names: NameArena) {
    let former = buckets
    buckets = Array(repeating: 0, count: former.count * 2)
    for first in former {
      var slot = first
      while slot != 0 {
        let next = links[Int(slot)]
        push(slot, Hash.hash(nodes[Int(slot)], names))
        slot = next
      }
    }
  }
}

/// A name of a directory. The directory is named by its number, which is never given twice, so that a place
/// does not outlive its directory.
struct Place: Hashable {
  let parent: NodeID
  let name: [UInt8]
}

/// Further names of files that have several: rare, so kept apart from the nodes.
struct Aliases {
  private var byPlace: [Place: Set<UInt32>] = [:]
  private var byNode: [UInt32: Set<Place>] = [:]

  func nodes(at place: Place) -> [UInt32] { byPlace.isEmpty ? [] : Array(byPlace[place] ?? []) }

  func names(in parent: NodeID) -> [[UInt8]] {
    byPlace.isEmpty ? [] : byPlace.keys.filter { $0.parent == parent }.map(\.name)
  }

  func first(of slot: UInt32) -> Place? { byNode[slot]?.first }

  mutating func add(_ slot: UInt32, at place: Place) {
    byPlace[place, default: []].insert(slot)
    byNode[slot, default: []].insert(place)
  }

  /// Takes one name of a node out; answers whether it was there.
  mutating func remove(_ slot: UInt32, at place: Place) -> Bool {
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
