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

  /// The texts of the component with an index, in a URL that has so many.
  private func type(_ index: Int) -> ValueType { index < components.count ? components[index].type : .text }

  private func coversPath(of other: RoutePattern) -> Bool {
    let (lengths, otherLengths) = (lengths, other.lengths)
    guard lengths.lowerBound <= otherLengths.lowerBound, otherLengths.upperBound <= lengths.upperBound else {
      return false
    }
    let count = min(max(components.count, other.components.count), otherLengths.upperBound)
    return (0..<count).allSatisfy { type($0).covers(other.type($0)) }
  }

  private func intersectsPath(of other: RoutePattern) -> Bool {
    let shortest = max(lengths.lowerBound, other.lengths.lowerBound)
    guard shortest <= min(lengths.upperBound, other.lengths.upperBound) else { return false }
    return (0..<min(shortest, max(components.count, other.components.count)))
      .allSatisfy { type($0).intersects(other.type($0)) }
  }

  private func coversQuery(of other: RoutePattern) -> Bool {
    parameters.allSatisfy { parameter in
      guard let same = other.parameters.first(where: { $0.name == parameter.name }) else {
        // The other pattern matches whether the parameter is present or absent.
        return parameter.isOptional && parameter.type == .text
      }
      // The other pattern may match whatever follows the first occurrence.
      if parameter.isArray, !same.isArray, parameter.type != .text { return false }
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
