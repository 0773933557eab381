/// The index of a route in the table: routes registered earlier have smaller ones.
typealias RouteIndex = UInt32

/// The routes of a table by what their patterns want, one thing after the other: scheme, components, tail,
/// a parameter. Routes that begin alike share the way.
///
/// Invariants: a node's `least` is not greater than the place of any route at or below it (a removal may leave
/// it smaller, which costs time and nothing else); the places in `ends` ascend.
struct RouteTrie: Sendable {
  /// A number that stands for a node; 0, the root's, stands for none where a child is meant.
  typealias NodeNumber = UInt32
  /// A node.
  struct Node: Sendable {
    /// The literal, or the parameter's name, that leads here from the parent.
    let label: [UInt8]
    let parent: NodeNumber
    var least: RouteIndex = .max
    var integer: NodeNumber = 0
    var number: NodeNumber = 0
    var text: NodeNumber = 0
    var tail: NodeNumber = 0
    /// The children that `literalEdges` finds.
    var literals: [NodeNumber] = []
    /// The children that `parameterEdges` finds.
    var parameters: [NodeNumber] = []
    /// The routes whose ways end here.
    var ends: [RouteIndex] = []
  }

  /// The node of all routes. Its children are those of the schemes, by literals, and by text that of the
  /// routes that take any scheme.
  static let root: NodeNumber = 0

  private(set) var nodes: [Node] = [Node(label: [], parent: root)]
  private(set) var literalEdges = EdgeIndex()
  private(set) var parameterEdges = EdgeIndex()

  // MARK: Changes

  /// Adds a route whose place is greater than those of all others.
  /// - Returns: the node where its way ends.
  mutating func add(_ pattern: RoutePattern, at place: RouteIndex) -> NodeNumber {
    var node = pass(Self.root, place)
    let scheme = pattern.scheme.map { ValueType.literal(Array($0.utf8)) }
    node = pass(child(of: node, for: scheme ?? .text), place)
    for component in pattern.components { node = pass(child(of: node, for: component.type), place) }
    if pattern.tail != nil { node = pass(child(of: node, \.tail), place) }
    node = end(of: pattern, from: node, place)
    nodes[Int(node)].ends.append(place)
    return node
  }

  /// Removes the route at a place from the node where its way ends.
  mutating func remove(_ place: RouteIndex, from node: NodeNumber) {
    nodes[Int(node)].ends.removeAll { $0 == place }
  }

  private mutating func pass(_ node: NodeNumber, _ place: RouteIndex) -> NodeNumber {
    nodes[Int(node)].least = min(nodes[Int(node)].least, place)
    return node
  }

  /// Where many routes differ in their parameters alone, they are told apart by one that they require: the one
  /// that fewest others have been told apart by.
  private mutating func end(of pattern: RoutePattern, from node: NodeNumber, _ place: RouteIndex)
    -> NodeNumber
  {
    var best: RoutePattern.Parameter?
    var fewest = Int.max
    for parameter in pattern.parameters where !parameter.isOptional {
      let count = count(of: parameter, at: node)
      if count < fewest { (best, fewest) = (parameter, count) }
    }
    guard let best else { return node }
    let named = pass(parameterChild(of: node, best.name), place)
    guard case .literal = best.type else { return named }
    return pass(child(of: named, for: best.type), place)
  }

  /// How many routes end where the parameter leads.
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

  private mutating func child(
    of node: NodeNumber, _ edge: WritableKeyPath<Node, NodeNumber>
  ) -> NodeNumber {
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
