import Layers

/// The order of use of the nodes that hold descriptors open, within a budget: a list through the nodes.
struct DescriptorLRU {
  /// How many descriptors may be open.
  let budget: Int
  /// How many are.
  private(set) var count = 0
  private var newest: UInt32 = 0
  private var oldest: UInt32 = 0

  init(budget: Int) { self.budget = budget }

  /// Makes a node, which just came to hold descriptors or uses them, the most recent one.
  mutating func touch(_ slot: UInt32, in nodes: inout [Node]) {
    if slot == newest { return }
    if nodes[Int(slot)].isRecent { unlink(slot, in: &nodes) }
    nodes[Int(slot)].isRecent = true
    nodes[Int(slot)].older = newest
    nodes[Int(slot)].newer = 0
    if newest != 0 { nodes[Int(newest)].newer = slot } else { oldest = slot }
    newest = slot
    count += Self.weight(nodes[Int(slot)])
  }

  /// Takes out what a node holds; whoever uses it goes on with it.
  mutating func remove(_ slot: UInt32, in nodes: inout [Node]) -> AnyObject? {
    guard nodes[Int(slot)].isRecent else { return nil }
    unlink(slot, in: &nodes)
    nodes[Int(slot)].isRecent = false
    let held: AnyObject? = nodes[Int(slot)].file ?? nodes[Int(slot)].directory?.merged
    nodes[Int(slot)].file = nil
    nodes[Int(slot)].directory?.merged = nil
    return held
  }

  /// Takes out what the least recent nodes hold: what is beyond the budget, and at least so many if there
  /// are.
  mutating func evict(atLeast: Int = 0, in nodes: inout [Node]) -> [AnyObject] {
    var evicted: [AnyObject] = []
    var rounds = 0
    while oldest != 0, count > budget || rounds < atLeast {
      if let held = remove(oldest, in: &nodes) { evicted.append(held) }
      rounds += 1
    }
    return evicted
  }

  private mutating func unlink(_ slot: UInt32, in nodes: inout [Node]) {
    let (newer, older) = (nodes[Int(slot)].newer, nodes[Int(slot)].older)
    if newer != 0 { nodes[Int(newer)].older = older } else { newest = older }
    if older != 0 { nodes[Int(older)].newer = newer } else { oldest = newer }
    count -= Self.weight(nodes[Int(slot)])
  }

  /// The descriptors that a node holds.
  private static func weight(_ node: Node) -> Int {
    node.file != nil ? 1 : node.directory?.merged?.parts.count ?? 0
  }

  /// What is wrong with the list, for tests: it must hold exactly the nodes that hold something.
  func checkInvariants(_ nodes: [Node]) -> [String] {
    var listed = 0
    var slot = newest
    while slot != 0, listed <= nodes.count {
      if !nodes[Int(slot)].isRecent { return ["node \(slot) is listed but not marked"] }
      listed += 1
      slot = nodes[Int(slot)].older
    }
    let holding = nodes.count { $0.file != nil || $0.directory?.merged != nil }
    let held = nodes.reduce(0) { $0 + Self.weight($1) }
    return listed == holding && held == count
      ? [] : ["\(holding) hold something, \(listed) are listed; \(held) descriptors, \(count) counted"]
  }
}
