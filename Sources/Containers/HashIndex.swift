/// A chained hash table of slots, which are indexes from 1 into the owner's array. The caller hashes the keys and
/// compares them.
///
/// It takes 8 bytes a slot, up to the largest one, and 4 a bucket. It stores the hashes, so that growing it does
/// not touch the owner's elements.
public struct HashIndex: Sendable {
  @usableFromInline
  struct Link: Sendable {
    /// The next slot of the chain; 0 ends it.
    @usableFromInline var next: UInt32 = 0
    @usableFromInline var hash: UInt32 = 0
    @usableFromInline init() {}
  }

  /// The first slots of the chains; their count is 0 or a power of two.
  @usableFromInline var buckets: [UInt32] = []
  /// By slot.
  @usableFromInline var links: [Link] = []
  @usableFromInline var count = 0

  @usableFromInline static let smallest = 16

  /// An empty index, which allocates nothing yet.
  public init() {}

  /// An empty index with room for a number of slots.
  public init(capacity: Int) {
    var size = Self.smallest
    while size < capacity { size *= 2 }
    buckets = Array(repeating: 0, count: size)
    links.reserveCapacity(capacity + 1)
  }

  /// The first slot with the hash that matches; 0 if there is none.
  @inlinable @inline(__always)
  public func first(_ hash: UInt32, where matches: (UInt32) -> Bool) -> UInt32 {
    var slot = head(hash)
    while slot != 0, links[Int(slot)].hash != hash || !matches(slot) { slot = links[Int(slot)].next }
    return slot
  }

  /// All slots with the hash that match.
  @inlinable
  public func all(_ hash: UInt32, where matches: (UInt32) -> Bool) -> [UInt32] {
    var found: [UInt32] = []
    var slot = head(hash)
    while slot != 0 {
      if links[Int(slot)].hash == hash, matches(slot) { found.append(slot) }
      slot = links[Int(slot)].next
    }
    return found
  }

  /// Adds a slot that is not in the index.
  @inlinable
  public mutating func insert(_ slot: UInt32, _ hash: UInt32) {
    while links.count <= slot { links.append(Link()) }
    links[Int(slot)].hash = hash
    count += 1
    if count > buckets.count { grow() }
    push(slot)
  }

  /// Removes a slot, which must be in the index.
  @inlinable
  public mutating func remove(_ slot: UInt32) {
    let bucket = bucket(links[Int(slot)].hash)
    var previous = buckets[bucket]
    if previous == slot {
      buckets[bucket] = links[Int(slot)].next
    } else {
      while links[Int(previous)].next != slot { previous = links[Int(previous)].next }
      links[Int(previous)].next = links[Int(slot)].next
    }
    count -= 1
  }

  @inlinable @inline(__always)
  func head(_ hash: UInt32) -> UInt32 { buckets.isEmpty ? 0 : buckets[bucket(hash)] }

  @inlinable @inline(__always)
  func bucket(_ hash: UInt32) -> Int { Int(hash) & (buckets.count - 1) }

  @inlinable
  mutating func push(_ slot: UInt32) {
    let bucket = bucket(links[Int(slot)].hash)
    links[Int(slot)].next = buckets[bucket]
    buckets[bucket] = slot
  }

  @usableFromInline
  mutating func grow() {
    let former = buckets
    buckets = Array(repeating: 0, count: max(Self.smallest, former.count * 2))
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
