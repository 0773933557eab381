import Containers

/// A branch-and-bound search for the first route that matches a URL.
///
/// The search descends the trie along the URL. Each component matches up to four children (literal, integer,
/// number, text). Nodes whose `least` is not below the best match so far are pruned. The number of visited nodes
/// is bounded by the number of ways in which the table's patterns can read a prefix of the URL, which is small
/// where patterns differ in literals.
struct RouteSearch {
  private struct Step {
    let node: RouteTrie.NodeNumber
    let depth: Int
    /// A copy of the node's lower bound.
    let least: UInt64
  }

  private var best: RouteIndex?
  /// The order of `best`; the greatest number without one.
  private var limit = UInt64.max
  private var next: Step?
  /// The other open branches. Most searches have none and so do not allocate.
  private var pending: [Step] = []

  static func first(for url: RouteURL, in table: RouteTable) -> RouteIndex? {
    var search = RouteSearch()
    search.run(url, table)
    return search.best
  }

  private mutating func run(_ url: RouteURL, _ table: RouteTable) {
    let scheme = table.trie.literalChild(
      of: RouteTrie.root, url.decoded.span.extracting(url.schemeRange.offsets))
    enqueue(scheme, 0, table.trie)
    enqueue(table.trie.nodes[Int(RouteTrie.root)].text, 0, table.trie)
    while let step = next ?? pending.popLast() {
      next = nil
      // A better match may have been found since.
      guard step.least < limit else { continue }
      if step.depth == url.componentRanges.count {
        finish(at: step.node, url, table)
      } else {
        descend(from: step, url, table)
      }
    }
  }

  /// Adds a node to the open branches unless it is pruned. The branch with the lowest bound is next.
  @inline(__always)
  private mutating func enqueue(_ node: RouteTrie.NodeNumber, _ depth: Int, _ trie: borrowing RouteTrie) {
    guard node != 0, trie.nodes[Int(node)].least < limit else { return }
    let step = Step(node: node, depth: depth, least: trie.nodes[Int(node)].least)
    guard let other = next else {
      next = step
      return
    }
    if other.least < step.least {
      pending.append(step)
    } else {
      pending.append(other)
      next = step
    }
  }

  private mutating func descend(from step: Step, _ url: RouteURL, _ table: RouteTable) {
    let index = Int(step.node)
    let tail = table.trie.nodes[index].tail
    if tail != 0, table.trie.nodes[Int(tail)].least < limit { finish(at: tail, url, table) }
    let component = url.decoded.span.extracting(url.componentRanges[step.depth].offsets)
    enqueue(table.trie.literalChild(of: step.node, component), step.depth + 1, table.trie)
    let integer = table.trie.nodes[index].integer
    if integer != 0, Numeral.isInteger(component) { enqueue(integer, step.depth + 1, table.trie) }
    let number = table.trie.nodes[index].number
    if number != 0, Numeral.isNumber(component) { enqueue(number, step.depth + 1, table.trie) }
    enqueue(table.trie.nodes[index].text, step.depth + 1, table.trie)
  }

  /// Tests the routes that end at a node after the last component.
  private mutating func finish(at node: RouteTrie.NodeNumber, _ url: RouteURL, _ table: RouteTable) {
    testRoutes(at: node, url, table)
    if table.trie.nodes[Int(node)].parameters.isEmpty { return }
    for parameter in url.parameters {
      let name = url.decoded.span.extracting(parameter.name.offsets)
      let named = table.trie.parameterEdges.find(name, from: node, in: table.trie.nodes)
      if named == 0 { continue }
      testRoutes(at: named, url, table)
      let value = url.decoded.span.extracting(parameter.value.offsets)
      let literal = table.trie.literalChild(of: named, value)
      if literal != 0 { testRoutes(at: literal, url, table) }
    }
  }

  private mutating func testRoutes(at node: RouteTrie.NodeNumber, _ url: RouteURL, _ table: RouteTable) {
    for position in table.trie.nodes[Int(node)].ends.indices {
      if isLast(table.trie.nodes[Int(node)].ends[position], url, table) { break }
    }
    for position in table.trie.nodes[Int(node)].guardedEnds.indices {
      if isLast(table.trie.nodes[Int(node)].guardedEnds[position], url, table) { break }
    }
  }

  /// Tests a route.
  /// - Returns: whether no later route can be better.
  @inline(__always)
  private mutating func isLast(_ index: RouteIndex, _ url: RouteURL, _ table: RouteTable) -> Bool {
    if index.order >= limit { return true }
    guard table.matchesQuery(of: url, index) else { return false }
    (best, limit) = (index, index.order)
    return true
  }
}

extension RouteTrie {
  /// The child on a literal edge; 0 if there is none.
  @inline(__always)
  func literalChild(of node: NodeNumber, _ literal: Span<UInt8>) -> NodeNumber {
    nodes[Int(node)].literals.isEmpty ? 0 : literalEdges.find(literal, from: node, in: nodes)
  }
}
