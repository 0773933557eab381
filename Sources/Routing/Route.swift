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
    guard description.utf8.count <= RouteURL.longestText else {
      throw RoutingError(.tooLong, "a route's line is at most \(RouteURL.longestText) bytes long")
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

/// A route as the table keeps it, with what a match needs at hand.
struct Entry: Sendable {
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

/// What one key of a pattern is bound to.
struct Binding: Sendable {
  enum Source {
    case component(Int)
    /// All components from that one on.
    case tail(from: Int)
    /// The first parameter of that name.
    case parameter([UInt8])
  }

  let key: String
  let source: Source
  let type: ValueType
  /// The text of a literal, made once.
  let literal: RouteValue?

  private init(_ key: String, _ source: Source, _ type: ValueType) {
    self.key = key
    self.source = source
    self.type = type
    if case .literal(let text) = type {
      literal = .text(String(decoding: text, as: UTF8.self))
    } else {
      literal = nil
    }
  }

  static func all(of pattern: RoutePattern) -> [Binding] {
    var bindings: [Binding] = []
    for (index, component) in pattern.components.enumerated() {
      bindings.append(Binding(component.key, .component(index), component.type))
    }
    if let tail = pattern.tail {
      bindings.append(Binding(tail, .tail(from: pattern.components.count), .text))
    }
    for parameter in pattern.parameters {
      bindings.append(Binding(parameter.key, .parameter(parameter.name), parameter.type))
    }
    return bindings.sorted { $0.key < $1.key }
  }
}
