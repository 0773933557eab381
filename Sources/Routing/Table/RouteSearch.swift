/// The search for the first registered route that takes a URL.
///
/// It walks the trie along the URL. At each component up to four children fit (the literal, an integer, a
/// number, any text), and all may have to be tried; but no node is tried below which all routes are later than
/// the best one found. So a search visits at most as many nodes as there are ways to read the URL's first
/// components in the table's patterns: a handful where patterns differ in literals, whatever their number, and
/// never more than the nodes of the trie.
struct RouteSearch {
  private struct Step {
    let node: RouteTrie.NodeNumber
    /// How many components have been used.
    let depth: Int
    /// The node's: nothing better is below.
    let least: RouteIndex
  }

  private var best = RouteIndex.max
  private var next: Step?
  /// What else is to be tried. Most searches never need it, and so allocate nothing.
  private var others: [Step] = []

  /// The place of the first route that takes the URL; nil if none does.
  static func first(for url: RouteURL, in table: RouteTable) -> RouteIndex? {
    var search = RouteSearch()
    search.run(url, table)
    return search.best == .max ? nil : search.best
  }

  private mutating func run(_ url: RouteURL, _ table: RouteTable) {
    let scheme = table.trie.literalChild(
      of: RouteTrie.root, url.decoded.span.extracting(url.schemePiece.range))
    consider(scheme, 0, table.trie)
    consider(table.trie.nodes[Int(RouteTrie.root)].text, 0, table.trie)
    while let step = next ?? others.popLast() {
      next = nil
      // A better one may have been found since.
      guard step.least < best else { continue }
      if step.depth == url.pieces.count {
        end(at: step.node, url, table)
      } else {
        go(on: step, url, table)
      }
    }
  }

  /// Tries a node later, unless it stands for none, or nothing better is below. The most promising is next.
  @inline(__always)
  private mutating func consider(_ node: RouteTrie.NodeNumber, _ depth: Int, _ trie: borrowing RouteTrie) {
    guard node != 0, trie.nodes[Int(node)].least < best else { return }
    let step = Step(node: node, depth: depth, least: trie.nodes[Int(node)].least)
    guard let rival = next else {
      next = step
      return
    }
    if rival.least < step.least {
      others.append(step)
    } else {
      others.append(rival)
      next = step
    }
  }

  /// Tries what the next component can be.
  private mutating func go(on step: Step, _ url: RouteURL, _ table: RouteTable) {
    let index = Int(step.node)
    let tail = table.trie.nodes[index].tail
    if tail != 0, table.trie.nodes[Int(tail)].least < best { end(at: tail, url, table) }
    let component = url.decoded.span.extracting(url.pieces[step.depth].range)
    consider(table.trie.literalChild(of: step.node, component), step.depth + 1, table.trie)
    let integer = table.trie.nodes[index].integer
    if integer != 0, Numeral.isInteger(component) { consider(integer, step.depth + 1, table.trie) }
    let number = table.trie.nodes[index].number
    if number != 0, Numeral.isNumber(component) { consider(number, step.depth + 1, table.trie) }
    consider(table.trie.nodes[index].text, step.depth + 1, table.trie)
  }

  /// Looks through the routes that end at a node once all components are used.
  private mutating func end(at node: RouteTrie.NodeNumber, _ url: RouteURL, _ table: RouteTable) {
    take(from: node, url, table)
    if table.trie.nodes[Int(node)].parameters.isEmpty { return }
    for parameter in url.parameters {
      let name = url.decoded.span.extracting(parameter.name.range)
      let named = table.trie.parameterEdges.find(name, from: node, in: table.trie.nodes)
      if named == 0 { continue }
      take(from: named, url, table)
      let value = url.decoded.span.extracting(parameter.value.range)
      let literal = table.trie.literalChild(of: named, value)
      if literal != 0 { take(from: literal, url, table) }
    }
  }

  private mutating func take(from node: RouteTrie.NodeNumber, _ url: RouteURL, _ table: RouteTable) {
    for index in table.trie.nodes[Int(node)].ends.indices {
      let place = table.trie.nodes[Int(node)].ends[index]
      if place >= best { return }
      if table.takesQuery(of: url, place) {
        best = place
        return
      }
    }
  }
}

extension RouteTrie {
  /// The child of a node by a literal; 0 if there is none.
  @inline(__always)
  func literalChild(of node: NodeNumber, _ literal: Span<UInt8>) -> NodeNumber {
    nodes[Int(node)].literals.isEmpty ? 0 : literalEdges.find(literal, from: node, in: nodes)
  }
}
