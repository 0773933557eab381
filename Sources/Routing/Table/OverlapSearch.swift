import Containers

/// The earlier routes that a route overlaps.
public struct RouteOverlaps: Hashable, Sendable {
  /// The names of the first of them, each once, in order.
  public let names: [String]
  /// How many routes were found.
  public let count: Int
  /// Whether the search ended before it had found all.
  public let isIncomplete: Bool

  /// The most names.
  public static let maxNames = 16

  /// No route.
  public static let none = RouteOverlaps([], isIncomplete: false)

  /// Whether there is none.
  public var isEmpty: Bool { count == 0 && !isIncomplete }

  /// - Parameter names: those of the overlapped routes, in order.
  init(_ names: [String], count: Int? = nil, isIncomplete: Bool) {
    var seen: Set<[UInt8]> = []
    var first: [String] = []
    for name in names where seen.insert(Array(name.utf8)).inserted {
      first.append(name)
      if first.count == Self.maxNames { break }
    }
    self.names = first
    self.count = count ?? names.count
    self.isIncomplete = isIncomplete
  }
}

/// Finds the routes whose scheme and components overlap a pattern's. The search descends the trie like
/// ``RouteSearch``, but follows every edge whose type intersects the pattern's. Since that may be all of them, and a
/// table is built route by route, it ends after a number of steps.
struct OverlapSearch {
  private enum Step {
    case node(RouteTrie.NodeNumber, depth: Int)
    /// The literal children of a node from a position on.
    case literals(RouteTrie.NodeNumber, from: Int, depth: Int)
    /// The parameters of a node from a position on, and the literals of each.
    case parameters(RouteTrie.NodeNumber, from: Int)
    case values(RouteTrie.NodeNumber, from: Int)
    /// The routes that end at a node, from a position on: first `ends`, then `guardedEnds`.
    case ends(RouteTrie.NodeNumber, from: Int)
  }

  static let maxSteps = 300

  private let lengths: ClosedRange<Int>
  /// The step on top of `pending`. Most searches need no other and so do not allocate.
  private var next: Step?
  private var pending: [Step] = []
  private var found: [RouteIndex] = []

  /// The indexes of the overlapping routes, ascending.
  static func indexes(
    overlapping pattern: RoutePattern, in trie: RouteTrie
  ) -> (found: [RouteIndex], isIncomplete: Bool) {
    if trie.branchesOff(pattern) { return ([], false) }
    var search = OverlapSearch(lengths: pattern.lengths)
    let isIncomplete = search.run(pattern, trie)
    if search.found.count < 2 { return (search.found, isIncomplete) }
    // A route that may lack its last component is found at both of its ends.
    let sorted = search.found.sorted()
    return (
      sorted.indices.filter { $0 == 0 || sorted[$0] != sorted[$0 - 1] }.map { sorted[$0] }, isIncomplete
    )
  }

  /// - Returns: whether it ended early.
  private mutating func run(_ pattern: RoutePattern, _ trie: RouteTrie) -> Bool {
    let scheme = pattern.scheme.map { ValueType.literal(Array($0.utf8)) }
    follow(RouteTrie.root, scheme ?? .text, to: 0, trie)
    var steps = 0
    while let step = next ?? pending.popLast() {
      next = nil
      steps += 1
      if steps > Self.maxSteps { return true }
      take(step, pattern, trie)
    }
    return false
  }

  private mutating func queue(_ step: Step) {
    if let next { pending.append(next) }
    next = step
  }

  private mutating func take(_ step: Step, _ pattern: RoutePattern, _ trie: RouteTrie) {
    switch step {
    case .node(let node, let depth): visit(node, depth, pattern, trie)
    case .literals(let parent, let position, let depth):
      let child = trie.nodes[Int(parent)].literals[position]
      queueLiterals(of: parent, from: position + 1, depth, trie)
      if pattern.overlapType(depth - 1).intersects(.literal(trie.nodes[Int(child)].label)) {
        queue(.node(child, depth: depth))
      }
    case .parameters(let parent, let position):
      let node = trie.nodes[Int(parent)].parameters[position]
      if position + 1 < trie.nodes[Int(parent)].parameters.count {
        queue(.parameters(parent, from: position + 1))
      }
      queueEnds(at: node, from: 0, trie)
      if !trie.nodes[Int(node)].literals.isEmpty { queue(.values(node, from: 0)) }
    case .values(let parent, let position):
      if position + 1 < trie.nodes[Int(parent)].literals.count {
        queue(.values(parent, from: position + 1))
      }
      queueEnds(at: trie.nodes[Int(parent)].literals[position], from: 0, trie)
    case .ends(let node, let position):
      let ends = trie.nodes[Int(node)].ends.count
      found.append(
        position < ends
          ? trie.nodes[Int(node)].ends[position] : trie.nodes[Int(node)].guardedEnds[position - ends])
      queueEnds(at: node, from: position + 1, trie)
    }
  }

  private mutating func visit(
    _ node: RouteTrie.NodeNumber, _ depth: Int, _ pattern: RoutePattern, _ trie: RouteTrie
  ) {
    if lengths.contains(depth) { collect(node, trie) }
    if depth >= lengths.upperBound {
      // Only a tail that may be empty ends here, and that has an end of its own at this node.
      return
    }
    if trie.nodes[Int(node)].tail != 0 { collect(trie.nodes[Int(node)].tail, trie) }
    follow(node, pattern.overlapType(depth), to: depth + 1, trie)
  }

  private mutating func follow(
    _ parent: RouteTrie.NodeNumber, _ type: ValueType, to depth: Int, _ trie: RouteTrie
  ) {
    queue(trie.nodes[Int(parent)].integer, if: type.intersects(.integer), depth)
    queue(trie.nodes[Int(parent)].number, if: type.intersects(.number), depth)
    queue(trie.nodes[Int(parent)].text, if: true, depth)
    if case .literal(let literal) = type {
      queue(trie.literalChild(of: parent, literal.span), if: true, depth)
    } else {
      queueLiterals(of: parent, from: 0, depth, trie)
    }
  }

  private mutating func queue(
    _ child: RouteTrie.NodeNumber, if isFollowed: @autoclosure () -> Bool, _ depth: Int
  ) {
    if child != 0, isFollowed() { queue(.node(child, depth: depth)) }
  }

  private mutating func queueLiterals(
    of parent: RouteTrie.NodeNumber, from position: Int, _ depth: Int, _ trie: RouteTrie
  ) {
    if position < trie.nodes[Int(parent)].literals.count {
      queue(.literals(parent, from: position, depth: depth))
    }
  }

  /// Queues all routes that end at a node or at its parameters' nodes.
  private mutating func collect(_ node: RouteTrie.NodeNumber, _ trie: RouteTrie) {
    queueEnds(at: node, from: 0, trie)
    if !trie.nodes[Int(node)].parameters.isEmpty { queue(.parameters(node, from: 0)) }
  }

  private mutating func queueEnds(
    at node: RouteTrie.NodeNumber, from position: Int, _ trie: RouteTrie
  ) {
    let count = trie.nodes[Int(node)].ends.count + trie.nodes[Int(node)].guardedEnds.count
    if position < count { queue(.ends(node, from: position)) }
  }
}

extension RoutePattern {
  /// The texts of the component with an index; the scheme's is -1.
  fileprivate func overlapType(_ index: Int) -> ValueType {
    index >= 0 && index < components.count ? components[index].type : .text
  }
}

extension RouteTrie {
  /// Whether a pattern has a literal where no other pattern with the same components before it has that literal or a
  /// type: then it overlaps none. False is no answer.
  fileprivate func branchesOff(_ pattern: RoutePattern) -> Bool {
    if pattern.scheme != nil || !nodes[Int(Self.root)].literals.isEmpty { return false }
    var node = nodes[Int(Self.root)].text
    for component in pattern.components.prefix(pattern.lengths.lowerBound) {
      if node == 0 { return true }
      guard case .literal(let literal) = component.type, nodes[Int(node)].hasOnlyLiterals else {
        return false
      }
      node = literalChild(of: node, literal.span)
    }
    return node == 0
  }
}
