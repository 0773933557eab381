import Containers
extension NodeTable {
  /// The size of the name arena in bytes, for tests.
  var nameBytes: Int { names.size }

  /// Checks the invariants of `Node`, for tests.
  func checkInvariants() -> [String] {
    var faults: [String] = []
    var used = 0
    for (slot, node) in nodes.enumerated() where slot != 0 && node.kind != nil {
      used += 1
      let listed = children(of: UInt32(slot))
      if node.children != listed.count {
        faults.append("node \(slot): \(node.children) children, \(listed.count) listed")
      }
      if listed.contains(where: { nodes[Int($0)].parent != slot }) {
        faults.append("node \(slot): a child has another parent")
      }
      if slot != Self.root, node.lookups == 0, node.children == 0 { faults.append("node \(slot) is unused") }
      if node.file != nil, !node.isPinned { faults.append("node \(slot) has a file but is not pinned") }
      if slot != Self.root, !node.isDetached,
        !nodes(named: name(of: UInt32(slot)), in: node.parent).contains(UInt32(slot))
      {
        faults.append("node \(slot) is not found by its name")
      }
      let found = identities.all(NodeHash.of(node.identity, layer: node.layer)) { $0 == slot }
      if found.count != (node.isIndexed ? 1 : 0) {
        faults.append("node \(slot): found \(found.count) times by its identity")
      }
    }
    if used != count { faults.append("count \(count), \(used) slots used") }
    return faults + descriptors.checkInvariants(nodes)
  }
}
