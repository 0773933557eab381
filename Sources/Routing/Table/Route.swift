import Containers

/// A pattern and the name of the notification that a matching URL posts.
///
/// A class, so that a command, a table and a match share one object: a copy of the struct would retain each array of
/// the pattern.
public final class Route: Hashable, Sendable, CustomStringConvertible {
  /// The notification's name.
  public let name: String
  /// The pattern of the URLs.
  public let pattern: RoutePattern
  /// The bytes of the command that registers it, with a newline.
  let lineSize: Int
  /// The numbers of the pattern's keys, sorted by key; empty if they are sorted as they are.
  let keyOrder: [UInt16]

  /// Creates a route that can be written as one line.
  /// - Throws: EINVAL if the name is not one word; E2BIG if the line is too long.
  public convenience init(name: String, pattern: RoutePattern) throws(RoutingError) {
    try Self.validate(name: name)
    try self.init(validName: name, pattern)
  }

  /// - Throws: E2BIG.
  init(validName name: String, _ pattern: consuming RoutePattern) throws(RoutingError) {
    lineSize = 8 + name.utf8.count + pattern.size
    keyOrder = pattern.keyOrder
    self.name = name
    self.pattern = pattern
    guard lineSize <= RouteURL.maxLength + 1 else {
      throw RoutingError(.tooLong, "a route's line is at most \(RouteURL.maxLength) bytes long")
    }
  }

  /// The command that registers the route.
  public var description: String {
    var text: [UInt8] = []
    append(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends ``description``.
  func append(to text: inout [UInt8]) {
    text += "route ".utf8
    text += name.utf8
    text.append(UInt8(ascii: " "))
    pattern.append(to: &text)
  }

  /// Checks that a name is not empty and has no whitespace and no control characters.
  public static func validate(name: String) throws(RoutingError) {
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

extension Route {
  /// Whether name and pattern are equal.
  public static func == (left: Route, right: Route) -> Bool {
    left.name == right.name && left.pattern == right.pattern
  }

  /// Hashes name and pattern.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(name)
    hasher.combine(pattern)
  }
}

extension RoutePattern {
  /// The number of keys: one for each component, then the tail's, then one for each parameter.
  var keyCount: Int { components.count + (tail == nil ? 0 : 1) + parameters.count }

  /// The key with a number.
  @inline(__always)
  func key(_ number: Int) -> String {
    if number < components.count { return components[number].key }
    if let tail {
      return number == components.count ? tail : parameters[number - components.count - 1].key
    }
    return parameters[number - components.count].key
  }

  fileprivate var keyOrder: [UInt16] {
    let isSorted = (0..<max(0, keyCount - 1)).allSatisfy { key($0) < key($0 + 1) }
    return isSorted ? [] : (0..<UInt16(keyCount)).sorted { key(Int($0)) < key(Int($1)) }
  }
}
