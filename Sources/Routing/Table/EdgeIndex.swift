/// The children of all nodes by the bytes that lead to them: a hash table, open addressing. The bytes
/// themselves stand in the children.
///
/// Invariant: at most half of the slots are taken, so that a search always meets an empty one.
struct EdgeIndex: Sendable {
  private struct Slot {
    var hash: UInt32 = 0
    var parent: RouteTrie.NodeNumber = 0
    /// 0: empty.
    var child: RouteTrie.NodeNumber = 0
  }

  private var slots: [Slot] = []
  private var count = 0

  /// The child to which the label leads; 0 if there is none.
  @inline(__always)
  func find(
    _ label: Span<UInt8>, from parent: RouteTrie.NodeNumber, in nodes: [RouteTrie.Node]
  ) -> RouteTrie.NodeNumber {
    if slots.isEmpty { return 0 }
    let hash = Self.hash(label, parent)
    var place = Int(hash) & (slots.count - 1)
    while true {
      let slot = slots[place]
      if slot.child == 0 { return 0 }
      if slot.hash == hash, slot.parent == parent, label.isEqual(to: nodes[Int(slot.child)].label) {
        return slot.child
      }
      place = (place + 1) & (slots.count - 1)
    }
  }

  /// Adds a child that is not there yet.
  mutating func insert(
    _ child: RouteTrie.NodeNumber, label: Span<UInt8>, from parent: RouteTrie.NodeNumber
  ) {
    count += 1
    if count * 2 > slots.count { grow() }
    put(Slot(hash: Self.hash(label, parent), parent: parent, child: child))
  }

  private mutating func grow() {
    let old = slots
    slots = Array(repeating: Slot(), count: max(16, old.count * 2))
    for slot in old where slot.child != 0 { put(slot) }
  }

  private mutating func put(_ slot: Slot) {
    var place = Int(slot.hash) & (slots.count - 1)
    while slots[place].child != 0 { place = (place + 1) & (slots.count - 1) }
    slots[place] = slot
  }

  /// Seeded anew in every process: nobody can choose names that collide.
  @inline(__always)
  private static func hash(_ label: Span<UInt8>, _ parent: RouteTrie.NodeNumber) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(parent)
    label.withUnsafeBytes { hasher.combine(bytes: $0) }
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}
