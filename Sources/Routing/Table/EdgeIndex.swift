import Containers

/// The trie's edges: a hash index from a parent and a label to a child. The nodes hold both keys.
struct EdgeIndex: Sendable {
  private var index = HashIndex()

  /// The child on the edge with a label; 0 if there is none.
  @inline(__always)
  func find(
    _ label: Span<UInt8>, from parent: RouteTrie.NodeNumber, in nodes: [RouteTrie.Node]
  ) -> RouteTrie.NodeNumber {
    let hash = label.withUnsafeBytes { Self.hash($0, parent) }
    return index.first(hash) { child in
      nodes[Int(child)].parent == parent && label.isEqual(to: nodes[Int(child)].label)
    }
  }

  mutating func insert(_ child: RouteTrie.NodeNumber, label: Span<UInt8>, from parent: RouteTrie.NodeNumber) {
    index.insert(child, label.withUnsafeBytes { Self.hash($0, parent) })
  }

  /// `Hasher` is seeded per process, which prevents chosen collisions.
  @inline(__always)
  private static func hash(_ label: UnsafeRawBufferPointer, _ parent: RouteTrie.NodeNumber) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(parent)
    hasher.combine(bytes: label)
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}
