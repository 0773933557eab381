/// The slots of a node table, with a list of those that have changed since they were last recorded.
struct NodeSlots {
  private var nodes: [Node]
  /// The changed slots, perhaps several times; kept only if changes are recorded.
  private(set) var changed: [UInt32] = []
  var isRecorded = false

  init(_ nodes: [Node]) { self.nodes = nodes }

  var count: Int { nodes.count }

  subscript(slot: Int) -> Node {
    _read { yield nodes[slot] }
    _modify {
      if isRecorded { changed.append(UInt32(truncatingIfNeeded: slot)) }
      yield &nodes[slot]
    }
  }

  mutating func append(_ node: Node) {
    if isRecorded { changed.append(UInt32(truncatingIfNeeded: nodes.count)) }
    nodes.append(node)
  }

  mutating func reserveCapacity(_ count: Int) { nodes.reserveCapacity(count) }

  mutating func forgetChanges() { changed.removeAll(keepingCapacity: true) }
}

extension NodeSlots: RandomAccessCollection {
  var startIndex: Int { 0 }
  var endIndex: Int { nodes.count }
}
