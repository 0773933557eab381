import Fuse

/// A hash table of nodes, chained through the nodes themselves, so that it costs four bytes a node and four a
/// bucket.
struct NodeChains {
  /// Where a node keeps the next of its chain; 0 ends.
  private let link: WritableKeyPath<Node, UInt32>
  /// First nodes of the chains; a power of two of them.
  private var buckets: [UInt32] = Array(repeating: 0, count: 64)
  private var count = 0

  init(link: WritableKeyPath<Node, UInt32>) { self.link = link }

  /// The first node of a hash's chain that matches; 0 if none does.
  @inline(__always)
  func first(_ hash: UInt64, in nodes: [Node], where matches: (Node) -> Bool) -> UInt32 {
    var slot = buckets[bucket(hash)]
    while slot != 0, !matches(nodes[Int(slot)]) { slot = nodes[Int(slot)][keyPath: link] }
    return slot
  }

  /// The nodes of a hash's chain that match.
  func all(_ hash: UInt64, in nodes: [Node], where matches: (Node) -> Bool) -> [UInt32] {
    var found: [UInt32] = []
    var slot = buckets[bucket(hash)]
    while slot != 0 {
      if matches(nodes[Int(slot)]) { found.append(slot) }
      slot = nodes[Int(slot)][keyPath: link]
    }
    return found
  }

  /// Adds a node. `rehash` tells the hash of one that is in the table already.
  mutating func insert(_ slot: UInt32, _ hash: UInt64, in nodes: inout [Node], rehash: (Node) -> UInt64) {
    count += 1
    if count > buckets.count { grow(&nodes, rehash) }
    push(slot, hash, &nodes)
  }

  /// Takes a node out.
  mutating func remove(_ slot: UInt32, _ hash: UInt64, in nodes: inout [Node]) {
    let next = nodes[Int(slot)][keyPath: link]
    var before = buckets[bucket(hash)]
    if before == slot {
      buckets[bucket(hash)] = next
    } else {
      while nodes[Int(before)][keyPath: link] != slot { before = nodes[Int(before)][keyPath: link] }
      nodes[Int(before)][keyPath: link] = next
    }
    nodes[Int(slot)][keyPath: link] = 0
    count -= 1
  }

  private func bucket(_ hash: UInt64) -> Int { Int(hash & UInt64(buckets.count - 1)) }

  private mutating func push(_ slot: UInt32, _ hash: UInt64, _ nodes: inout [Node]) {
    nodes[Int(slot)][keyPath: link] = buckets[bucket(hash)]
    buckets[bucket(hash)] = slot
  }

  private mutating func grow(_ nodes: inout [Node], _ rehash: (Node) -> UInt64) {
    let former = buckets
    buckets = Array(repeating: 0, count: former.count * 2)
    for first in former {
      var slot = first
      while slot != 0 {
        let next = nodes[Int(slot)][keyPath: link]
        push(slot, rehash(nodes[Int(slot)]), &nodes)
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
