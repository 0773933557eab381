import Containers
import Posix

extension NodeTable: InvariantChecking {
  /// The most slots of a table that is checked as a whole. Of a larger one, a node at random is checked each time.
  private static let smallest = 32

  func brokenInvariant() -> String? {
    if nodes.count <= Self.smallest { return checkInvariants().first }
    let slot = UInt32.random(in: 1..<UInt32(nodes.count))
    return nodes[Int(slot)].kind == nil ? nil : faults(of: slot).first
  }

  /// Checks the invariants of `Node`.
  func checkInvariants() -> [String] {
    let used = (1..<UInt32(nodes.count)).filter { nodes[Int($0)].kind != nil }
    var faults = used.flatMap { self.faults(of: $0) }
    if used.count != count { faults.append("count \(count), \(used.count) slots used") }
    let polled = (1..<UInt32(nodes.count)).count { uncovered.contains($0) }
    if polled != uncovered.count { faults.append("\(uncovered.count) to be polled, \(polled) listed") }
    return faults + descriptors.checkInvariants(nodes)
  }

  private func faults(of slot: UInt32) -> [String] {
    (childFaults(of: slot) + indexFaults(of: slot)).map { "node \(slot): \($0)" }
  }

  private func childFaults(of slot: UInt32) -> [String] {
    let node = nodes[Int(slot)]
    let listed = children(of: slot)
    var faults: [String] = []
    if node.children != listed.count { faults.append("\(node.children) children, \(listed.count) listed") }
    if listed.contains(where: { nodes[Int($0)].parent != slot }) {
      faults.append("a child has another parent")
    }
    if node.directory?.oldestChild ?? 0 != listed.last ?? 0 { faults.append("the list ends elsewhere") }
    if slot != Self.root, node.lookups == 0, node.children == 0 { faults.append("unused") }
    return faults
  }

  private func indexFaults(of slot: UInt32) -> [String] {
    let node = nodes[Int(slot)]
    var faults: [String] = []
    if uncovered.contains(slot) != (node.directory?.isUncovered ?? false) {
      faults.append("wrongly polled or not")
    }
    if node.file != nil, !node.isPinned { faults.append("has a file but is not pinned") }
    if slot != Self.root, !node.isDetached,
      !nodes(named: name(of: slot), in: node.parent).contains(slot)
    {
      faults.append("not found by its name")
    }
    let matches = identities.all(node.identityHash) { $0 == slot }
    if matches.count != (node.isIndexed ? 1 : 0) {
      faults.append("found \(matches.count) times by its identity")
    }
    return faults
  }
}
