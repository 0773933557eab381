/// A pattern and the name of the notification that a matching URL posts.
public struct Route: Hashable, Sendable, CustomStringConvertible {
  /// The notification's name.
  public let name: String
  /// The pattern of the URLs.
  public let pattern: RoutePattern
  /// The bytes of the command that registers it, with a newline.
  let lineSize: Int

  /// Creates a route that can be written as one line.
  /// - Throws: EINVAL if the name is not one word; E2BIG if the line is too long.
  public init(name: String, pattern: RoutePattern) throws(RoutingError) {
    try Self.validate(name: name)
    self.name = name
    self.pattern = pattern
    lineSize = 8 + name.utf8.count + pattern.size
    guard lineSize <= RouteURL.maxLength + 1 else {
      throw RoutingError(.tooLong, "a route's line is at most \(RouteURL.maxLength) bytes long")
    }
  }

  /// The command that registers the route.
  public var description: String { "route \(name) \(pattern)" }

  /// Checks that a name is not empty and has no whitespace and no control characters.
  static func validate(name: String) throws(RoutingError) {
    if name.isEmpty { throw .malformed("a route's name is missing", at: 0) }
    if name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) { return }
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
  /// The nodes of the trie that have the route.
  let nodes: [RouteTrie.NodeNumber]
  /// Sorted by key.
  let bindings: [Binding]

  init(_ route: Route, nodes: [RouteTrie.NodeNumber]) {
    self.route = route
    self.nodes = nodes
    bindings = Binding.all(of: route.pattern)
  }
}

/// A key of a pattern and the part of a URL that it is bound to. Small, to limit cache misses.
struct Binding: Sendable {
  enum Source {
    /// The component with an index, if the URL has it.
    case component(Int, ValueType)
    /// All components from an index on.
    case tail(from: Int)
    /// The value of the pattern's parameter with an index.
    case parameter(Int)
  }

  let key: String
  let source: Source

  static func all(of pattern: RoutePattern) -> [Binding] {
    var bindings: [Binding] = []
    bindings.reserveCapacity(
      pattern.components.count + (pattern.tail == nil ? 0 : 1) + pattern.parameters.count)
    for (index, component) in pattern.components.enumerated() {
      bindings.append(Binding(key: component.key, source: .component(index, component.type)))
    }
    if let tail = pattern.tail {
      bindings.append(Binding(key: tail, source: .tail(from: pattern.components.count)))
    }
    for (index, parameter) in pattern.parameters.enumerated() {
      bindings.append(Binding(key: parameter.key, source: .parameter(index)))
    }
    bindings.sort { $0.key < $1.key }
    return bindings
  }
}
