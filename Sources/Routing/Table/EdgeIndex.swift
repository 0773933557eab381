import Containers

/// The trie's edges: a hash index from a parent and a label to a child. The nodes hold both keys.
struct EdgeIndex: Sendable {
  private var index = HashIndex()

  /// The child on the edge with a label; 0 if there is none.
  @inline(__always)
  func find(
    _ label: Span<UInt8>, from parent: RouteTrie.NodeNumber, in nodes: [RouteTrie.Node]
  ) -> RouteTrie.NodeNumber {
    find(label, Self.hash(label, parent), from: parent, in: nodes)
  }

  /// As `find`, with the label's hash.
  @inline(__always)
  func find(
    _ label: Span<UInt8>, _ hash: UInt32, from parent: RouteTrie.NodeNumber, in nodes: [RouteTrie.Node]
  ) -> RouteTrie.NodeNumber {
    index.first(hash) { child in
      nodes[Int(child)].parent == parent && label.isEqual(to: nodes[Int(child)].label)
    }
  }

  /// - Parameter hash: of the child's label and its parent.
  mutating func insert(_ child: RouteTrie.NodeNumber, _ hash: UInt32) { index.insert(child, hash) }

  /// `Hasher` is seeded per process, which prevents chosen collisions.
  @inline(__always)
  static func hash(_ label: Span<UInt8>, _ parent: RouteTrie.NodeNumber) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(parent)
    label.withUnsafeBytes { hasher.combine(bytes: $0) }
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}
