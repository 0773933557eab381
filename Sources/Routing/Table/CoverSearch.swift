import Containers

/// Finds the first route that matches all URLs of a pattern. The search descends the trie like ``RouteSearch``, but
/// follows every edge whose type covers the pattern's.
struct CoverSearch {
  private let pattern: RoutePattern
  private var pending: [(node: RouteTrie.NodeNumber, depth: Int)] = []
  private var best: RouteIndex?

  /// - Parameter covers: whether the route with an index covers the pattern.
  static func first(
    covering pattern: RoutePattern, in trie: RouteTrie, _ covers: (RouteIndex) -> Bool
  ) -> RouteIndex? {
    var search = CoverSearch(pattern: pattern)
    search.run(trie, covers)
    return search.best
  }

  private mutating func run(_ trie: RouteTrie, _ covers: (RouteIndex) -> Bool) {
    let root = RouteTrie.root
    if let scheme = pattern.scheme { queue(trie.literalChild(of: root, Array(scheme.utf8).span), 0, trie) }
    queue(trie.nodes[Int(root)].text, 0, trie)
    // A tail that may be empty covers one that may not, from one component further on.
    let depths = pattern.components.count + (pattern.tail == nil ? 0 : 1)
    while let (node, depth) = pending.popLast() {
      if depth == pattern.components.count, pattern.tail == nil { test(node, trie, covers) }
      let tail = trie.nodes[Int(node)].tail
      if tail != 0 { test(tail, trie, covers) }
      if depth < depths { follow(node, depth, trie) }
    }
  }

  private mutating func follow(_ node: RouteTrie.NodeNumber, _ depth: Int, _ trie: RouteTrie) {
    let type = depth < pattern.components.count ? pattern.components[depth].type : .text
    if case .literal(let literal) = type { queue(trie.literalChild(of: node, literal.span), depth + 1, trie) }
    if ValueType.integer.covers(type) { queue(trie.nodes[Int(node)].integer, depth + 1, trie) }
    if ValueType.number.covers(type) { queue(trie.nodes[Int(node)].number, depth + 1, trie) }
    queue(trie.nodes[Int(node)].text, depth + 1, trie)
  }

  private mutating func queue(_ node: RouteTrie.NodeNumber, _ depth: Int, _ trie: RouteTrie) {
    if node != 0, trie.nodes[Int(node)].least < best?.order ?? .max { pending.append((node, depth)) }
  }

  /// Tests the routes that end at a node or have parameters that the pattern has.
  private mutating func test(
    _ node: RouteTrie.NodeNumber, _ trie: RouteTrie, _ covers: (RouteIndex) -> Bool
  ) {
    testEnds(node, trie, covers)
    if !trie.nodes[Int(node)].parameters.isEmpty { test(trie.parameterEdges, from: node, trie, covers) }
    if !trie.nodes[Int(node)].guardedEnds.isEmpty { test(trie.guardEdges, from: node, trie, covers) }
  }

  private mutating func test(
    _ edges: EdgeIndex, from node: RouteTrie.NodeNumber, _ trie: RouteTrie, _ covers: (RouteIndex) -> Bool
  ) {
    for parameter in pattern.parameters {
      let named = edges.find(parameter.name.span, from: node, in: trie.nodes)
      if named == 0 { continue }
      testEnds(named, trie, covers)
      if case .literal(let literal) = parameter.type {
        let child = trie.literalChild(of: named, literal.span)
        if child != 0 { testEnds(child, trie, covers) }
      }
    }
  }

  private mutating func testEnds(
    _ node: RouteTrie.NodeNumber, _ trie: RouteTrie, _ covers: (RouteIndex) -> Bool
  ) {
    for position in trie.nodes[Int(node)].ends.indices {
      let index = trie.nodes[Int(node)].ends[position]
      if let best, index >= best { return }
      if covers(index) {
        best = index
        return
      }
    }
  }
}
