import Containers
import Layers

/// The nodes that hold descriptors open, in the order of their last use, within a budget.
struct DescriptorLRU {
  let budget: Int
  /// How many descriptors are open.
  private(set) var count = 0
  private var order = LRUList()
  /// Whether files of the topmost layer that have lost their names are kept beyond the budget, since nothing else keeps
  /// them: the mount is writable.
  private let keepsLost: Bool

  init(budget: Int, keepsLost: Bool = false) {
    self.budget = budget
    self.keepsLost = keepsLost
  }

  /// Makes a node the most recently used one: it has just stored descriptors, or is about to use them.
  mutating func touch(_ slot: UInt32, in nodes: NodeSlots) {
    if !order.contains(slot) { count += Self.weight(nodes[Int(slot)]) }
    order.touch(slot)
  }

  /// Removes what a node holds; its users keep their references.
  mutating func remove(_ slot: UInt32, in nodes: inout NodeSlots) -> AnyObject? {
    guard order.contains(slot) else { return nil }
    order.remove(slot)
    count -= Self.weight(nodes[Int(slot)])
    let held: AnyObject? = nodes[Int(slot)].file ?? nodes[Int(slot)].directory?.merged
    nodes[Int(slot)].file = nil
    nodes[Int(slot)].directory?.merged = nil
    return held
  }

  /// Removes what exceeds the budget, and what at least `atLeast` nodes hold, least recently used first.
  mutating func evict(atLeast: Int = 0, in nodes: inout NodeSlots) -> [AnyObject] {
    var evicted: [AnyObject] = []
    var (rounds, firstKept) = (0, UInt32(0))
    while order.oldest != 0, order.oldest != firstKept, count > budget || rounds < atLeast {
      if keepsLost, nodes[Int(order.oldest)].isLastOfUpperFile {
        if firstKept == 0 { firstKept = order.oldest }
        order.touch(order.oldest)
        continue
      }
      if let held = remove(order.oldest, in: &nodes) { evicted.append(held) }
      rounds += 1
    }
    return evicted
  }

  private static func weight(_ node: Node) -> Int {
    node.file != nil ? 1 : node.directory?.merged?.parts.count ?? 0
  }

  /// Checks, for tests, that exactly the nodes that hold something are listed.
  func checkInvariants(_ nodes: NodeSlots) -> [String] {
    var listed = 0
    var slot = order.newest
    while slot != 0, listed <= nodes.count {
      listed += 1
      slot = order.older(than: slot)
    }
    let holding = nodes.count { $0.file != nil || $0.directory?.merged != nil }
    let held = nodes.reduce(0) { $0 + Self.weight($1) }
    return listed == holding && held == count
      ? [] : ["\(holding) hold something, \(listed) are listed; \(held) descriptors, \(count) counted"]
  }
}
