import Containers

/// The children of all nodes by their parent and label, which are in the nodes themselves.
struct EdgeIndex: Sendable {
  private var index = HashIndex()

  /// The child of a label; 0 if there is none.
  @inline(__always)
  func find(
    _ label: Span<UInt8>, from parent: RouteTrie.NodeNumber, in nodes: [RouteTrie.Node]
  ) -> RouteTrie.NodeNumber {
    let hash = label.withUnsafeBytes { Self.hash($0, parent) }
    return index.first(hash) { child in
      nodes[Int(child)].parent == parent && label.isEqual(to: nodes[Int(child)].label)
    }
  }

  /// Adds a child that is not in the index.
  mutating func insert(
    _ child: RouteTrie.NodeNumber, label: Span<UInt8>, from parent: RouteTrie.NodeNumber
  ) {
    index.insert(child, label.withUnsafeBytes { Self.hash($0, parent) })
  }

  /// Seeded anew in each process, so that clients cannot choose labels that collide.
  @inline(__always)
  private static func hash(_ label: UnsafeRawBufferPointer, _ parent: RouteTrie.NodeNumber) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(parent)
    hasher.combine(bytes: label)
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}
