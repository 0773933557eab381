/// A pattern and the name of the notification that a matching URL posts.
public struct Route: Hashable, Sendable, CustomStringConvertible {
  /// The notification's name.
  public let name: String
  /// The pattern of the URLs.
  public let pattern: RoutePattern

  /// Creates a route that can be written as one line.
  /// - Throws: EINVAL if the name is not one word; E2BIG if the line is too long.
  public init(name: String, pattern: RoutePattern) throws(RoutingError) {
    try Self.validate(name: name)
    self.name = name
    self.pattern = pattern
    guard description.utf8.count <= RouteURL.maxLength else {
      throw RoutingError(.tooLong, "a route's line is at most \(RouteURL.maxLength) bytes long")
    }
  }

  /// The command that registers the route.
  public var description: String { "route \(name) \(pattern)" }

  /// Checks that a name is not empty and has no whitespace and no control characters.
  static func validate(name: String) throws(RoutingError) {
    if name.isEmpty { throw .malformed("a route's name is missing", at: 0) }
    var offset = 0
    for scalar in name.unicodeScalars {
      if scalar.properties.isWhitespace || scalar.properties.generalCategory == .control {
        throw .malformed("a route's name holds no space and no control character", at: offset)
      }
      offset += UTF8.width(scalar)
    }
  }
}

/// A route in the table, with precomputed bindings. A class, so that a match retains one object rather than each
/// array of a route: with many routes every retain is a cache miss.
final class RouteEntry: Sendable {
  let route: Route
  /// The node where the route's path in the trie ends.
  let node: RouteTrie.NodeNumber
  /// Sorted by key.
  let bindings: [Binding]

  init(_ route: Route, node: RouteTrie.NodeNumber) {
    self.route = route
    self.node = node
    bindings = Binding.all(of: route.pattern)
  }
}

/// A key of a pattern and the part of a URL that it is bound to. Small, to limit cache misses.
struct Binding: Sendable {
  enum Source {
    /// The text of the pattern's literal.
    case literal(String)
    case text(component: Int)
    case integer(component: Int)
    case number(component: Int)
    /// All components from an index on.
    case tail(from: Int)
    /// The value of the pattern's parameter with an index.
    case parameter(Int)
  }

  let key: String
  let source: Source

  static func all(of pattern: RoutePattern) -> [Binding] {
    var bindings: [Binding] = []
    for (index, component) in pattern.components.enumerated() {
      bindings.append(Binding(key: component.key, source: source(component.type, index)))
    }
    if let tail = pattern.tail {
      bindings.append(Binding(key: tail, source: .tail(from: pattern.components.count)))
    }
    for (index, parameter) in pattern.parameters.enumerated() {
      bindings.append(Binding(key: parameter.key, source: .parameter(index)))
    }
    return bindings.sorted { $0.key < $1.key }
  }

  private static func source(_ type: ValueType, _ component: Int) -> Source {
    switch type {
    case .text: .text(component: component)
    case .integer: .integer(component: component)
    case .number: .number(component: component)
    case .literal(let text): .literal(String(decoding: text, as: UTF8.self))
    }
  }
}
