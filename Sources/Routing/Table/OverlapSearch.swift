/// Finds the routes whose scheme and components overlap a pattern's. The search descends the trie like
/// ``RouteSearch``, but follows every edge whose type intersects the pattern's.
struct OverlapSearch {
  private let pattern: RoutePattern
  private let trie: RouteTrie
  private var pending: [(node: RouteTrie.NodeNumber, depth: Int)] = []
  private var found: [RouteIndex] = []

  /// The indexes of the overlapping routes, ascending.
  static func indexes(overlapping pattern: RoutePattern, in trie: RouteTrie) -> [RouteIndex] {
    var search = OverlapSearch(pattern: pattern, trie: trie)
    search.run()
    return search.found.sorted()
  }

  private mutating func run() {
    let scheme = pattern.scheme.map { ValueType.literal(Array($0.utf8)) }
    follow(RouteTrie.root, scheme ?? .text, to: 0)
    while let (node, depth) = pending.popLast() {
      // A tail matches one component of any text, then any number.
      let hasMore = depth < pattern.components.count || pattern.tail != nil
      if pattern.tail == nil ? !hasMore : depth > pattern.components.count { collect(node) }
      guard hasMore else { continue }
      if trie.nodes[Int(node)].tail != 0 { collect(trie.nodes[Int(node)].tail) }
      follow(
        node, depth < pattern.components.count ? pattern.components[depth].type : .text, to: depth + 1)
    }
  }

  private mutating func follow(_ parent: RouteTrie.NodeNumber, _ type: ValueType, to depth: Int) {
    let node = trie.nodes[Int(parent)]
    for (child, childType) in [(node.integer, ValueType.integer), (node.number, .number), (node.text, .text)]
    where child != 0 && type.intersects(childType) {
      pending.append((child, depth))
    }
    if case .literal(let literal) = type {
      let child = trie.literalChild(of: parent, literal.span)
      if child != 0 { pending.append((child, depth)) }
    } else {
      for child in node.literals where type.intersects(.literal(trie.nodes[Int(child)].label)) {
        pending.append((child, depth))
      }
    }
  }

  /// Adds all routes that end at a node or at its parameters' nodes.
  private mutating func collect(_ node: RouteTrie.NodeNumber) {
    found += trie.nodes[Int(node)].ends
    for parameter in trie.nodes[Int(node)].parameters {
      found += trie.nodes[Int(parameter)].ends
      for literal in trie.nodes[Int(parameter)].literals { found += trie.nodes[Int(literal)].ends }
    }
  }
}
