/// The search for the routes whose scheme and components overlap a pattern's. It walks the trie like the search
/// for a URL, but along types: at each component it takes every child with which a text is shared.
struct OverlapSearch {
  private let pattern: RoutePattern
  private let trie: RouteTrie
  private var pending: [(node: RouteTrie.NodeNumber, depth: Int)] = []
  private var found: [RouteIndex] = []

  /// The places of the routes, in ascending order.
  static func places(overlapping pattern: RoutePattern, in trie: RouteTrie) -> [RouteIndex] {
    var search = OverlapSearch(pattern, trie)
    search.run()
    return search.found.sorted()
  }

  private init(_ pattern: RoutePattern, _ trie: RouteTrie) {
    self.pattern = pattern
    self.trie = trie
  }

  private mutating func run() {
    let scheme = pattern.scheme.map { ValueType.literal(Array($0.utf8)) }
    follow(RouteTrie.root, scheme ?? .text, to: 0)
    while let (node, depth) = pending.popLast() {
      // At its end a pattern with a tail wants one more component, of any text; then it takes any number.
      let hasMore = depth < pattern.components.count || pattern.tail != nil
      if pattern.tail == nil ? !hasMore : depth > pattern.components.count { collect(node) }
      guard hasMore else { continue }
      if trie.nodes[Int(node)].tail != 0 { collect(trie.nodes[Int(node)].tail) }
      follow(
        node, depth < pattern.components.count ? pattern.components[depth].type : .text, to: depth + 1)
    }
  }

  /// Notes the children with which the type shares a text.
  private mutating func follow(_ parent: RouteTrie.NodeNumber, _ type: ValueType, to depth: Int) {
    let node = trie.nodes[Int(parent)]
    for (child, wanted) in [(node.integer, ValueType.integer), (node.number, .number), (node.text, .text)]
    where child != 0 && type.intersects(wanted) {
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

  /// Adds all routes that end at a node, whatever their parameters.
  private mutating func collect(_ node: RouteTrie.NodeNumber) {
    found += trie.nodes[Int(node)].ends
    for parameter in trie.nodes[Int(node)].parameters {
      found += trie.nodes[Int(parameter)].ends
      for literal in trie.nodes[Int(parameter)].literals { found += trie.nodes[Int(literal)].ends }
    }
  }
}
