/// A trie of patterns. The edges of a path are a pattern's scheme, components, tail and one parameter; routes
/// with a common prefix share nodes.
///
/// Invariants: a node's `least` is not greater than the order of any route at or below it (a removal may leave
/// it smaller, which costs only time); the indexes in `ends` ascend.
struct RouteTrie: Sendable {
  /// An index into `nodes`. As a child, 0 means none, since the root is no node's child.
  typealias NodeNumber = UInt32
  struct Node: Sendable {
    /// The literal or the parameter's name on the edge from the parent.
    let label: [UInt8]
    let parent: NodeNumber
    /// A lower bound of the orders of the routes at or below this node.
    var least = UInt64.max
    var integer: NodeNumber = 0
    var number: NodeNumber = 0
    var text: NodeNumber = 0
    var tail: NodeNumber = 0
    /// The children in `literalEdges`.
    var literals: [NodeNumber] = []
    /// The children in `parameterEdges`.
    var parameters: [NodeNumber] = []
    /// The routes whose paths end here.
    var ends: [RouteIndex] = []
  }

  /// Its literal children are the schemes; its `text` child is for routes without a scheme.
  static let root: NodeNumber = 0

  private(set) var nodes: [Node] = [Node(label: [], parent: root)]
  private(set) var literalEdges = EdgeIndex()
  private(set) var parameterEdges = EdgeIndex()

  /// Adds a route.
  /// - Returns: The nodes where the route's paths end: two if it may lack its last component or its tail.
  mutating func add(_ pattern: RoutePattern, at index: RouteIndex) -> [NodeNumber] {
    var node = visit(Self.root, index)
    let scheme = pattern.scheme.map { ValueType.literal(Array($0.utf8)) }
    node = visit(child(of: node, for: scheme ?? .text), index)
    var ends: [NodeNumber] = []
    for component in pattern.components {
      if component.isOptional { ends.append(node) }
      node = visit(child(of: node, for: component.type), index)
    }
    if pattern.isTailOptional { ends.append(node) }
    if pattern.tail != nil { node = visit(child(of: node, \.tail), index) }
    ends.append(node)
    return ends.map { node in
      let end = end(of: pattern, from: node, index)
      nodes[Int(end)].ends.insertInOrder(index)
      return end
    }
  }

  mutating func remove(_ index: RouteIndex, from node: NodeNumber) {
    let position = nodes[Int(node)].ends.position(of: index)
    if position < nodes[Int(node)].ends.count { nodes[Int(node)].ends.remove(at: position) }
  }

  /// Lowers the node's bound to a route below it, and returns the node.
  private mutating func visit(_ node: NodeNumber, _ index: RouteIndex) -> NodeNumber {
    nodes[Int(node)].least = min(nodes[Int(node)].least, index.order)
    return node
  }

  /// Routes that differ only in parameters branch on one required parameter: the one whose node has the fewest
  /// routes so far.
  private mutating func end(
    of pattern: RoutePattern, from node: NodeNumber, _ index: RouteIndex
  ) -> NodeNumber {
    var best: RoutePattern.Parameter?
    var fewest = Int.max
    for parameter in pattern.parameters where !parameter.isOptional {
      let count = count(of: parameter, at: node)
      if count < fewest { (best, fewest) = (parameter, count) }
    }
    guard let best else { return node }
    let named = visit(parameterChild(of: node, best.name), index)
    guard case .literal = best.type else { return named }
    return visit(child(of: named, for: best.type), index)
  }

  private func count(of parameter: RoutePattern.Parameter, at node: NodeNumber) -> Int {
    var end = parameterEdges.find(parameter.name.span, from: node, in: nodes)
    if end != 0, case .literal(let literal) = parameter.type {
      end = literalEdges.find(literal.span, from: end, in: nodes)
    }
    return end == 0 ? 0 : nodes[Int(end)].ends.count
  }

  private mutating func child(of node: NodeNumber, for type: ValueType) -> NodeNumber {
    switch type {
    case .text: return child(of: node, \.text)
    case .integer: return child(of: node, \.integer)
    case .number: return child(of: node, \.number)
    case .literal(let literal):
      let found = literalEdges.find(literal.span, from: node, in: nodes)
      if found != 0 { return found }
      let new = newNode(literal, below: node)
      nodes[Int(node)].literals.append(new)
      literalEdges.insert(new, label: literal.span, from: node)
      return new
    }
  }

  private mutating func child(of node: NodeNumber, _ edge: WritableKeyPath<Node, NodeNumber>) -> NodeNumber {
    let found = nodes[Int(node)][keyPath: edge]
    if found != 0 { return found }
    let new = newNode([], below: node)
    nodes[Int(node)][keyPath: edge] = new
    return new
  }

  private mutating func parameterChild(of node: NodeNumber, _ name: [UInt8]) -> NodeNumber {
    let found = parameterEdges.find(name.span, from: node, in: nodes)
    if found != 0 { return found }
    let new = newNode(name, below: node)
    nodes[Int(node)].parameters.append(new)
    parameterEdges.insert(new, label: name.span, from: node)
    return new
  }

  private mutating func newNode(_ label: [UInt8], below parent: NodeNumber) -> NodeNumber {
    nodes.append(Node(label: label, parent: parent))
    return NodeNumber(nodes.count - 1)
  }
}
