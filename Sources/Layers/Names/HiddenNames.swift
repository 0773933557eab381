import CLibrary
import Posix

/// Names that the view hides in all layers (`-o hide=`), by glob(7) patterns.
///
/// A pattern without a slash is matched against names in every directory, one with a slash against the path from the root, component
/// by component; a component `**` stands for any number of them. Names are bytes: `?` and `[…]` match one.
public final class HiddenNames: Sendable {
  /// Why a pattern cannot be used.
  public enum Fault: Error {
    case empty
    /// A bracket that is not closed, a backslash at the end, or a pattern longer than any name.
    case malformed
    /// It ends with a slash, or has two in a row.
    case emptyComponent
    /// `.` or `..`, which no path has.
    case dotComponent
    /// Nothing follows `**`.
    case wholeTree
  }

  fileprivate enum Component: Sendable {
    /// `**`: no component, or some.
    case anyDepth
    case literal([UInt8])
    case suffix([UInt8])
    case glob(Glob)
  }

  private let names: [Component]
  private let paths: [[Component]]
  private let foldsNames: Bool

  /// - Parameters:
  ///   - patterns: as users give them.
  ///   - foldsNames: whether case does not count.
  public init(_ patterns: [[UInt8]], foldsNames: Bool) throws(Fault) {
    var (names, paths): ([Component], [[Component]]) = ([], [])
    for pattern in patterns {
      let components = try Self.components(foldsNames ? NameFolding.key(of: pattern) : pattern)
      if pattern.contains(slash) { paths.append(components) } else { names += components }
    }
    (self.names, self.paths, self.foldsNames) = (names, paths, foldsNames)
  }

  private static func components(_ pattern: [UInt8]) throws(Fault) -> [Component] {
    if pattern.isEmpty { throw .empty }
    let isPath = pattern.contains(slash)
    let path = pattern.first == slash ? pattern.dropFirst() : pattern[...]
    var components: [Component] = []
    for part in path.split(separator: slash, omittingEmptySubsequences: false) {
      components.append(try component(Array(part), isPath: isPath))
    }
    if case .anyDepth = components.last { throw .wholeTree }
    return components
  }

  private static func component(_ part: [UInt8], isPath: Bool) throws(Fault) -> Component {
    if part.isEmpty { throw .emptyComponent }
    if part.elementsEqual(".".utf8) || part.elementsEqual("..".utf8) { throw .dotComponent }
    if isPath, part.elementsEqual("**".utf8) { return .anyDepth }
    if Glob.isLiteral(part) { return .literal(part) }
    if let suffix = Glob.suffix(in: part) { return .suffix(suffix) }
    guard let glob = Glob(part) else { throw .malformed }
    return .glob(glob)
  }

  /// Where a directory is, as far as it matters for the patterns of paths.
  public struct Place: Sendable {
    fileprivate let names: HiddenNames
    /// The pattern, and the component of it that names in the directory are matched against.
    fileprivate let positions: [Position]

    fileprivate struct Position: Equatable {
      let pattern: Int
      let component: Int
    }

    /// Whether a name in the directory is hidden.
    @inline(never)
    func hides(_ name: CName) -> Bool {
      names.hides(UnsafeRawBufferPointer(start: name, count: strlen(name)), at: positions)
    }

    /// The place of a directory in this one.
    func entering(_ name: CName) -> Place {
      if positions.isEmpty { return self }
      let name = UnsafeRawBufferPointer(start: name, count: strlen(name))
      return Place(names: names, positions: names.positions(after: name, from: positions))
    }

    /// Whether the same names are hidden in and below a directory of this place as in one of the other.
    func isSame(as other: Place) -> Bool { positions == other.positions }
  }

  /// The place of the root.
  var root: Place {
    Place(names: self, positions: closed(paths.indices.map { Place.Position(pattern: $0, component: 0) }))
  }

  // MARK: - Matching

  private func hides(_ name: UnsafeRawBufferPointer, at positions: [Place.Position]) -> Bool {
    if names.isEmpty, positions.isEmpty { return false }
    return withFolded(name) { name in
      if names.contains(where: { $0.matches(name) }) { return true }
      return positions.contains { position in
        let components = paths[position.pattern]
        return position.component == components.count - 1 && components[position.component].matches(name)
      }
    }
  }

  private func positions(
    after name: UnsafeRawBufferPointer, from positions: [Place.Position]
  ) -> [Place.Position] {
    withFolded(name) { name in
      var next: [Place.Position] = []
      for position in positions {
        let components = paths[position.pattern]
        if case .anyDepth = components[position.component] {
          next.append(position)
        } else if position.component + 1 < components.count, components[position.component].matches(name) {
          next.append(Place.Position(pattern: position.pattern, component: position.component + 1))
        }
      }
      return closed(next)
    }
  }

  /// With the components after each `**`, which can stand for no component; each position once.
  private func closed(_ positions: [Place.Position]) -> [Place.Position] {
    var closed: [Place.Position] = []
    for position in positions {
      var component = position.component
      while true {
        let reached = Place.Position(pattern: position.pattern, component: component)
        if !closed.contains(reached) { closed.append(reached) }
        guard case .anyDepth = paths[position.pattern][component] else { break }
        component += 1
      }
    }
    return closed
  }

  private func withFolded<Result>(
    _ name: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result {
    guard foldsNames, let key = NameFolding.key(of: name) else { return body(name) }
    return key.withUnsafeBytes(body)
  }
}

private let slash = UInt8(ascii: "/")

extension HiddenNames.Component {
  fileprivate func matches(_ name: UnsafeRawBufferPointer) -> Bool {
    switch self {
    case .anyDepth: false
    case .literal(let own): own.count == name.count && name.elementsEqual(own)
    case .suffix(let suffix):
      name.count >= suffix.count && name[(name.count - suffix.count)...].elementsEqual(suffix)
    case .glob(let glob): glob.matches(Array(name))
    }
  }
}

extension LayerDirectory {
  /// Whether the option `hide` hides a name here, in all layers.
  public func conceals(_ name: CName) -> Bool { place?.hides(name) ?? false }
}
