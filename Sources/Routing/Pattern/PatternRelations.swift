/// Set relations between the URLs that two patterns match. Scheme, components and query constrain a URL
/// independently, and none of them is unsatisfiable. Hence a pattern covers another if and only if each of its
/// parts covers the other's part, and two patterns overlap if and only if all their parts overlap.
extension RoutePattern {
  /// Whether this pattern matches every URL that the other matches.
  func covers(_ other: RoutePattern) -> Bool {
    (scheme == nil || scheme == other.scheme) && coversPath(of: other) && coversQuery(of: other)
  }

  /// Whether some URL matches both patterns.
  func overlaps(_ other: RoutePattern) -> Bool {
    (scheme == nil || other.scheme == nil || scheme == other.scheme) && intersectsPath(of: other)
      && intersectsQuery(of: other)
  }

  private func coversPath(of other: RoutePattern) -> Bool {
    let (count, otherCount) = (components.count, other.components.count)
    if tail == nil {
      guard other.tail == nil, count == otherCount else { return false }
    } else {
      // A tail matches at least one component.
      guard other.tail == nil ? count < otherCount : count <= otherCount else { return false }
    }
    return zip(components, other.components).allSatisfy { $0.type.covers($1.type) }
  }

  private func intersectsPath(of other: RoutePattern) -> Bool {
    let (count, otherCount) = (components.count, other.components.count)
    switch (tail == nil, other.tail == nil) {
    case (true, true): guard count == otherCount else { return false }
    case (true, false): guard count > otherCount else { return false }
    case (false, true): guard count < otherCount else { return false }
    case (false, false): break
    }
    return zip(components, other.components).allSatisfy { $0.type.intersects($1.type) }
  }

  private func coversQuery(of other: RoutePattern) -> Bool {
    parameters.allSatisfy { parameter in
      guard let same = other.parameters.first(where: { $0.name == parameter.name }) else {
        // The other pattern matches whether the parameter is present or absent.
        return parameter.isOptional && parameter.type == .text
      }
      return (parameter.isOptional || !same.isOptional) && parameter.type.covers(same.type)
    }
  }

  private func intersectsQuery(of other: RoutePattern) -> Bool {
    parameters.allSatisfy { parameter in
      guard let same = other.parameters.first(where: { $0.name == parameter.name }) else { return true }
      return (parameter.isOptional && same.isOptional) || parameter.type.intersects(same.type)
    }
  }
}
