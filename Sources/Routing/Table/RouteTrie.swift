import Containers

/// A trie of patterns. The edges of a path are a pattern's scheme, components, tail and one parameter; routes
/// with a common prefix share nodes.
///
/// Invariants: a node's `least` is not greater than the order of any route at or below it (a removal may leave
/// it smaller, which costs only time); the indexes in `ends` and `guardedEnds` ascend.
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
    var ends = ShortArray<RouteIndex>()
    /// The guarded routes among those whose paths end here, which are not in `ends`.
    var guardedEnds: [RouteIndex] = []

    /// Whether it has no child on an edge without a label.
    var hasOnlyLiterals: Bool { integer == 0 && number == 0 && text == 0 && tail == 0 }

    /// The child on an edge. Not by a key path, which is interpreted at each access.
    subscript(edge: Edge) -> NodeNumber {
      get {
        switch edge {
        case .integer: integer
        case .number: number
        case .text: text
        case .tail: tail
        }
      }
      set {
        switch edge {
        case .integer: integer = newValue
        case .number: number = newValue
        case .text: text = newValue
        case .tail: tail = newValue
        }
      }
    }
  }

  /// An edge without a label.
  enum Edge { case integer, number, text, tail }

  /// Its literal children are the schemes; its `text` child is for routes without a scheme.
  static let root: NodeNumber = 0

  private(set) var nodes: [Node] = [Node(label: [], parent: root)]
  private(set) var literalEdges = EdgeIndex()
  private(set) var parameterEdges = EdgeIndex()
  /// From the ends of guarded routes to nodes that have them in `ends`, for the search for a covering route.
  private(set) var guardEdges = EdgeIndex()

  /// Adds a route.
  /// - Returns: The nodes that have the route: those where its paths end, two if it may lack its last component or its
  ///   tail, and those of its guards.
  mutating func add(_ pattern: RoutePattern, at index: RouteIndex) -> ShortArray<NodeNumber> {
    var node = visit(Self.root, index)
    let scheme = pattern.scheme.map { ValueType.literal(Array($0.utf8)) }
    node = visit(child(of: node, for: scheme ?? .text), index)
    var ends = ShortArray<NodeNumber>()
    for component in pattern.components {
      if component.isOptional { addEnd(of: pattern, at: node, index, to: &ends) }
      node = visit(child(of: node, for: component.type), index)
    }
    if pattern.isTailOptional { addEnd(of: pattern, at: node, index, to: &ends) }
    if pattern.tail != nil { node = visit(child(of: node, .tail), index) }
    addEnd(of: pattern, at: node, index, to: &ends)
    return ends
  }

  mutating func remove(_ index: RouteIndex, from node: NodeNumber) {
    nodes[Int(node)].ends.remove(index)
    nodes[Int(node)].guardedEnds.remove(index)
  }

  private mutating func addEnd(
    of pattern: RoutePattern, at node: NodeNumber, _ index: RouteIndex, to ends: inout ShortArray<NodeNumber>
  ) {
    if pattern.parameters.isEmpty {
      nodes[Int(node)].ends.insertInOrder(index)
      return ends.append(node)
    }
    if let required = rarest(of: pattern.parameters.filter { !$0.isOptional }, from: node, parameterEdges) {
      let end = parameterNode(of: node, for: required, index)
      nodes[Int(end)].ends.insertInOrder(index)
      return ends.append(end)
    }
    let guards = pattern.parameters.filter { $0.type != .text }
    guard let chosen = rarest(of: guards, from: node, guardEdges) else {
      nodes[Int(node)].ends.insertInOrder(index)
      return ends.append(node)
    }
    nodes[Int(node)].guardedEnds.insertInOrder(index)
    let guardNode = guardNode(of: node, for: chosen)
    nodes[Int(guardNode)].ends.insertInOrder(index)
    ends.append(node)
    ends.append(guardNode)
  }

  /// Lowers the node's bound to a route below it, and returns the node.
  private mutating func visit(_ node: NodeNumber, _ index: RouteIndex) -> NodeNumber {
    nodes[Int(node)].least = min(nodes[Int(node)].least, index.order)
    return node
  }

  /// Of some parameters, the one whose node has the fewest routes so far.
  private func rarest(
    of parameters: [RoutePattern.Parameter], from node: NodeNumber, _ edges: EdgeIndex
  ) -> RoutePattern.Parameter? {
    if parameters.count < 2 { return parameters.first }
    return parameters.map { ($0, count(of: $0, from: node, edges)) }.min { $0.1 < $1.1 }?.0
  }

  private func count(of parameter: RoutePattern.Parameter, from node: NodeNumber, _ edges: EdgeIndex) -> Int {
    var end = edges.find(parameter.name.span, from: node, in: nodes)
    if end != 0, case .literal(let literal) = parameter.type {
      end = literalEdges.find(literal.span, from: end, in: nodes)
    }
    return end == 0 ? 0 : nodes[Int(end)].ends.count
  }

  /// Routes that differ only in parameters branch on one required parameter.
  private mutating func parameterNode(
    of node: NodeNumber, for parameter: RoutePattern.Parameter, _ index: RouteIndex
  ) -> NodeNumber {
    let named = visit(parameterChild(of: node, parameter.name), index)
    guard case .literal = parameter.type else { return named }
    return visit(child(of: named, for: parameter.type), index)
  }

  /// A route without required parameters matches URLs that lack all of its parameters, but covers only patterns that
  /// have its optional ones, unless they take any text. One of these is its guard.
  private mutating func guardNode(of node: NodeNumber, for parameter: RoutePattern.Parameter) -> NodeNumber {
    let hash = EdgeIndex.hash(parameter.name.span, node)
    var named = guardEdges.find(parameter.name.span, hash, from: node, in: nodes)
    if named == 0 {
      named = newNode(parameter.name, below: node)
      guardEdges.insert(named, hash)
    }
    guard case .literal = parameter.type else { return named }
    return child(of: named, for: parameter.type)
  }

  private mutating func child(of node: NodeNumber, for type: ValueType) -> NodeNumber {
    switch type {
    case .text: return child(of: node, .text)
    case .integer: return child(of: node, .integer)
    case .number: return child(of: node, .number)
    case .literal(let literal): return literalChild(of: node, adding: literal)
    }
  }

  private mutating func literalChild(of node: NodeNumber, adding literal: [UInt8]) -> NodeNumber {
    let hash = EdgeIndex.hash(literal.span, node)
    let found = literalEdges.find(literal.span, hash, from: node, in: nodes)
    if found != 0 { return found }
    let new = newNode(literal, below: node)
    nodes[Int(node)].literals.append(new)
    literalEdges.insert(new, hash)
    return new
  }

  @inline(__always)
  private mutating func child(of node: NodeNumber, _ edge: Edge) -> NodeNumber {
    let found = nodes[Int(node)][edge]
    if found != 0 { return found }
    let new = newNode([], below: node)
    nodes[Int(node)][edge] = new
    return new
  }

  private mutating func parameterChild(of node: NodeNumber, _ name: [UInt8]) -> NodeNumber {
    let hash = EdgeIndex.hash(name.span, node)
    let found = parameterEdges.find(name.span, hash, from: node, in: nodes)
    if found != 0 { return found }
    let new = newNode(name, below: node)
    nodes[Int(node)].parameters.append(new)
    parameterEdges.insert(new, hash)
    return new
  }

  private mutating func newNode(_ label: [UInt8], below parent: NodeNumber) -> NodeNumber {
    // What is reserved and not used takes no memory, and large arrays take long to copy.
    if nodes.count == nodes.capacity { nodes.reserveCapacity(8 * nodes.count) }
    nodes.append(Node(label: label, parent: parent))
    return NodeNumber(nodes.count - 1)
  }
}
