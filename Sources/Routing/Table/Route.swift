/// A pattern and the name of the notification that its URLs become.
public struct Route: Hashable, Sendable, CustomStringConvertible {
  /// The notification's name.
  public let name: String
  /// The URLs.
  public let pattern: RoutePattern

  /// A route of that name.
  /// - Throws: EINVAL where a name would not read back as one word; E2BIG where the whole would not read back
  ///   as one line.
  public init(name: String, pattern: RoutePattern) throws(RoutingError) {
    try Self.check(name: name)
    self.name = name
    self.pattern = pattern
    guard description.utf8.count <= RouteURL.maxLength else {
      throw RoutingError(.tooLong, "a route's line is at most \(RouteURL.maxLength) bytes long")
    }
  }

  /// The line that registers it.
  public var description: String { "route \(name) \(pattern)" }

  /// Names are words: one or more characters, none of them a space or a control character.
  static func check(name: String) throws(RoutingError) {
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

/// A route as the table keeps it, with what a match needs at hand. A class, so that a match holds on to one
/// object and not to all that a route is made of: with many routes, each costs an access to cold memory.
final class Entry: Sendable {
  let route: Route
  /// Where its way in the trie ends.
  let node: RouteTrie.NodeNumber
  /// What it binds, sorted by key.
  let bindings: [Binding]

  init(_ route: Route, node: RouteTrie.NodeNumber) {
    self.route = route
    self.node = node
    bindings = Binding.all(of: route.pattern)
  }
}

/// What one key of a pattern is bound to. Kept small for the same reason.
struct Binding: Sendable {
  enum Source {
    /// A literal, whose text is known.
    case literal(String)
    case text(component: Int)
    case integer(component: Int)
    case number(component: Int)
    /// All components from that one on.
    case tail(from: Int)
    /// What fits the pattern's parameter of that place.
    case parameter(Int)
  }

  let key: String
  let source: Source

  /// What a pattern binds, sorted by key.
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
