/// What a pattern requires of a URL that can be looked up: a scheme, a literal component, a parameter.
///
/// A pattern covers only patterns with all of its own requirements, so those that it may cover are found by the one
/// that the fewest routes have.
private enum Requirement: Hashable {
  case scheme(String)
  case component(Int, [UInt8])
  case parameter([UInt8])
  case value([UInt8], [UInt8])

  /// Those that every pattern has that this one covers.
  static func shared(byAllCoveredBy pattern: RoutePattern) -> [Requirement] {
    // A component that may be absent requires nothing of shorter URLs.
    (pattern.scheme.map { [.scheme($0)] } ?? [])
      + literals(of: pattern.components.prefix(pattern.lengths.lowerBound))
      + pattern.parameters.filter { !$0.isOptional || $0.type != .text }.map { parameter in
        guard case .literal(let literal) = parameter.type else { return .parameter(parameter.name) }
        return .value(parameter.name, literal)
      }
  }

  /// All that a pattern has.
  static func all(of pattern: RoutePattern) -> [Requirement] {
    (pattern.scheme.map { [.scheme($0)] } ?? []) + literals(of: pattern.components[...])
      + pattern.parameters.flatMap { parameter -> [Requirement] in
        guard case .literal(let literal) = parameter.type else { return [.parameter(parameter.name)] }
        return [.parameter(parameter.name), .value(parameter.name, literal)]
      }
  }

  private static func literals(of components: ArraySlice<RoutePattern.Component>) -> [Requirement] {
    components.enumerated().compactMap { index, component in
      guard case .literal(let literal) = component.type else { return nil }
      return .component(index, literal)
    }
  }
}

/// The routes by their requirements, to find those that a new route before them would cover.
struct RequirementIndex: Sendable {
  private var routes: [Requirement: [RouteIndex]] = [:]

  mutating func add(_ pattern: RoutePattern, at index: RouteIndex) {
    for requirement in Requirement.all(of: pattern) { routes[requirement, default: []].insertInOrder(index) }
  }

  mutating func remove(_ pattern: RoutePattern, at index: RouteIndex) {
    for requirement in Requirement.all(of: pattern) {
      routes[requirement]?.remove(index)
      if routes[requirement]?.isEmpty == true { routes[requirement] = nil }
    }
  }

  /// The routes that a pattern may cover, in order; nil if all may be covered.
  func candidates(coveredBy pattern: RoutePattern) -> [RouteIndex]? {
    Requirement.shared(byAllCoveredBy: pattern).map { routes[$0] ?? [] }.min { $0.count < $1.count }
  }
}
