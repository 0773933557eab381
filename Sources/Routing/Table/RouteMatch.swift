/// A value that a key is bound to.
public enum RouteValue: Hashable, Sendable {
  /// From `s:`, `l:` and `*:`.
  case text(String)
  /// From `i:`.
  case integer(Int64)
  /// From `f:`; finite.
  case number(Double)
  /// From a parameter's `[]`.
  case array([RouteValue])
}

/// The result of matching a URL against a route.
public struct RouteMatch: Sendable {
  /// A key of the pattern and its value.
  public struct Item: Hashable, Sendable {
    /// The key.
    public let key: String
    /// The value.
    public let value: RouteValue
  }

  /// The name of the route and of the notification.
  public let name: String
  /// The URL's scheme, in lower case.
  public let scheme: String
  /// The URL's port; nil without one.
  public let port: Int?
  /// The bound values, sorted by key. An absent optional component or parameter has none.
  public let userInfo: [Item]
  /// The parameters that the pattern does not bind, percent-encoded; nil if there are none.
  public let query: String?
  /// The fragment, percent-encoded; nil if there is none.
  public let fragment: String?

  /// The value of a key; nil if the key is unbound.
  public subscript(key: String) -> RouteValue? { userInfo.first { $0.key == key }?.value }

  init(_ url: RouteURL, _ route: Route) {
    name = route.name
    scheme = url.scheme
    port = url.port
    var items: [Item] = []
    let count = route.pattern.keyCount
    items.reserveCapacity(count)
    for place in 0..<count {
      let number = route.keyOrder.isEmpty ? place : Int(route.keyOrder[place])
      if let value = url.value(ofKey: number, route.pattern) {
        items.append(Item(key: route.pattern.key(number), value: value))
      }
    }
    userInfo = items
    query = url.parameters.isEmpty ? nil : url.unboundQuery(route.pattern)
    fragment = url.fragment
  }
}

/// A route that a URL matches. It stays as it is when the table changes.
public struct FoundRoute: Sendable {
  let route: Route

  /// The match of a URL for which the table found it.
  public func match(_ url: RouteURL) -> RouteMatch { RouteMatch(url, route) }
}

extension RouteURL {
  /// The index of the first parameter with a name.
  func index(ofParameter name: [UInt8]) -> Int? {
    let bytes = decoded.span
    for index in parameters.indices where bytes.extracting(parameters[index].name.offsets).isEqual(to: name) {
      return index
    }
    return nil
  }

  /// The value of the pattern's key with a number; nil if it is unbound.
  @inline(__always)
  fileprivate func value(ofKey number: Int, _ pattern: RoutePattern) -> RouteValue? {
    if number < pattern.components.count {
      let type = pattern.components[number].type
      return number < componentRanges.count ? value(of: componentRanges[number], type) : nil
    }
    if pattern.tail == nil { return value(of: pattern.parameters[number - pattern.components.count]) }
    if number > pattern.components.count {
      return value(of: pattern.parameters[number - pattern.components.count - 1])
    }
    return .text(componentRanges[number...].map { text(of: $0) }.joined(separator: "/"))
  }

  private func value(of parameter: RoutePattern.Parameter) -> RouteValue? {
    if parameter.isArray { return values(of: parameter) }
    return index(ofParameter: parameter.name).flatMap { value(of: parameters[$0].value, parameter.type) }
  }

  /// All values of a parameter; nil if it does not occur.
  private func values(of parameter: RoutePattern.Parameter) -> RouteValue? {
    let values = parameters.filter { isParameter($0, parameter.name) }.compactMap {
      value(of: $0.value, parameter.type)
    }
    return values.isEmpty ? nil : .array(values)
  }

  /// Whether a parameter has a name.
  func isParameter(_ parameter: Parameter, _ name: [UInt8]) -> Bool {
    decoded.span.extracting(parameter.name.offsets).isEqual(to: name)
  }

  private func value(of range: ByteRange, _ type: ValueType) -> RouteValue? {
    let bytes = decoded.span.extracting(range.offsets)
    return switch type {
    case .integer: Numeral.integer(bytes).map { .integer($0) }
    case .number: Numeral.number(bytes).map { .number($0) }
    case .text, .literal: .text(text(of: range))
    }
  }

  /// The parameters of the query that a pattern does not bind, joined.
  fileprivate func unboundQuery(_ pattern: RoutePattern) -> String? {
    let bound = Set(
      pattern.parameters.flatMap { parameter in
        parameter.isArray
          ? parameters.indices.filter { isParameter(parameters[$0], parameter.name) }
          : index(ofParameter: parameter.name).map { [$0] } ?? []
      })
    if bound.count == parameters.count { return nil }
    var rest: [UInt8] = []
    for (index, parameter) in parameters.enumerated() where !bound.contains(index) {
      if !rest.isEmpty { rest.append(UInt8(ascii: "&")) }
      rest += text[parameter.written.offsets]
    }
    return String(escaping: rest)
  }
}
