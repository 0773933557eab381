/// How the sets of URLs relate that two patterns take. Scheme, components and query limit a URL independently
/// of each other, and none of them leaves no URL at all: so a pattern covers another exactly where each of its
/// parts covers the other's, and they overlap exactly where all their parts do.
extension RoutePattern {
  /// Whether this takes every URL that the other takes.
  func covers(_ other: RoutePattern) -> Bool {
    (scheme == nil || scheme == other.scheme) && coversPath(of: other) && coversQuery(of: other)
  }

  /// Whether there is a URL that both take.
  func overlaps(_ other: RoutePattern) -> Bool {
    (scheme == nil || other.scheme == nil || scheme == other.scheme) && intersectsPath(of: other)
      && intersectsQuery(of: other)
  }

  private func coversPath(of other: RoutePattern) -> Bool {
    let (count, otherCount) = (components.count, other.components.count)
    if tail == nil {
      guard other.tail == nil, count == otherCount else { return false }
    } else {
      // The tail takes one component at least.
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
        // The other takes the URL with anything there, and without it.
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
