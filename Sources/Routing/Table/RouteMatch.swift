/// A value that a URL's text was read as.
public enum RouteValue: Hashable, Sendable {
  /// Of `s:`, `l:` and `*:`.
  case text(String)
  /// Of `i:`.
  case integer(Int64)
  /// Of `f:`; finite.
  case number(Double)
}

/// What a URL becomes by the route that takes it.
public struct RouteMatch: Sendable {
  /// A key of the pattern and what it is bound to.
  public struct Item: Hashable, Sendable {
    /// The key.
    public let key: String
    /// The value.
    public let value: RouteValue
  }

  /// The route's name, which is the notification's.
  public let name: String
  /// The values, sorted by key. An optional parameter that is not in the URL has none.
  public let userInfo: [Item]
  /// The parameters that the pattern does not bind, as they were written; nil if there are none.
  public let query: String?
  /// The fragment as it was written; nil if there is none.
  public let fragment: String?

  /// The value of a key; nil if it has none.
  public subscript(key: String) -> RouteValue? { userInfo.first { $0.key == key }?.value }

  /// Binds a URL that the entry's route takes.
  init(_ url: RouteURL, _ entry: Entry) {
    name = entry.route.name
    var items: [Item] = []
    items.reserveCapacity(entry.bindings.count)
    for binding in entry.bindings {
      if let value = url.value(of: binding, entry.route.pattern) {
        items.append(Item(key: binding.key, value: value))
      }
    }
    userInfo = items
    query = url.parameters.isEmpty ? nil : url.unboundQuery(entry.route.pattern)
    fragment = url.fragment
  }
}

extension RouteURL {
  /// Where the first parameter of a name stands.
  func place(ofParameter name: [UInt8]) -> Int? {
    let bytes = decoded.span
    for place in parameters.indices where bytes.extracting(parameters[place].name.range).isEqual(to: name) {
      return place
    }
    return nil
  }

  fileprivate func value(of binding: borrowing Binding, _ pattern: RoutePattern) -> RouteValue? {
    switch binding.source {
    case .literal(let text): return .text(text)
    case .text(let component): return .text(text(of: pieces[component]))
    case .integer(let component): return value(of: pieces[component], .integer)
    case .number(let component): return value(of: pieces[component], .number)
    case .tail(let start): return .text(pieces[start...].map { text(of: $0) }.joined(separator: "/"))
    case .parameter(let index):
      let parameter = pattern.parameters[index]
      return place(ofParameter: parameter.name).flatMap { value(of: parameters[$0].value, parameter.type) }
    }
  }

  private func value(of piece: Piece, _ type: ValueType) -> RouteValue? {
    let bytes = decoded.span.extracting(piece.range)
    return switch type {
    case .integer: Numeral.integer(bytes).map { .integer($0) }
    case .number: Numeral.number(bytes).map { .number($0) }
    case .text, .literal: .text(text(of: piece))
    }
  }

  /// What a pattern leaves of the query.
  fileprivate func unboundQuery(_ pattern: RoutePattern) -> String? {
    let bound = pattern.parameters.compactMap { place(ofParameter: $0.name) }
    if bound.count == parameters.count { return nil }
    var rest: [UInt8] = []
    for (place, parameter) in parameters.enumerated() where !bound.contains(place) {
      if !rest.isEmpty { rest.append(UInt8(ascii: "&")) }
      rest += text[parameter.written.range]
    }
    return String(escaping: rest)
  }
}
