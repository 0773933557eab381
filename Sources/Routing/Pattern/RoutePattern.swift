/// A pattern that URLs are matched against:
///
///     [SCHEME://]COMPONENT/COMPONENT…[?PARAMETER&PARAMETER…]
///
/// A component is `s:Key` (any text), `i:Key` (an integer), `f:Key` (a number), `l:(text)Key` (exactly that
/// text) or, as the last, `*:Key` (one or more components, joined by `/`) or `**:Key` (any number of them). A `?`
/// after the type's letter makes the last component optional. A parameter is `name=` and one of the first four; a
/// `?` after the letter makes it optional, and `[]` binds the values of all its occurrences as an array. `SCHEME://`
/// alone matches URLs without components.
///
/// The first `?` of a pattern that is no part of a component's type begins the parameters. A literal's text ends at the
/// last `)` of its component or parameter. Literals and parameter names are percent-decoded after splitting, so `%2F`,
/// `%3F`, `%26` and `%25` denote `/`, `?`, `&` and `%`.
///
/// A required parameter must be present, and its first occurrence must match. An optional parameter may be
/// absent but must match if present. Further occurrences are ignored, unless they are bound to an array and must
/// match, too.
public struct RoutePattern: Hashable, Sendable, CustomStringConvertible {
  /// A component that is bound to a key.
  public struct Component: Hashable, Sendable {
    /// The texts that match.
    public let type: ValueType
    /// The key in the result's userInfo.
    public let key: String
    /// Whether it may be absent; only the last component may.
    public var isOptional = false
  }

  /// A parameter that is bound to a key.
  public struct Parameter: Hashable, Sendable {
    /// The name, decoded.
    public let name: [UInt8]
    /// The texts that match.
    public let type: ValueType
    /// Whether it may be absent.
    public let isOptional: Bool
    /// The key in the result's userInfo.
    public let key: String
    /// Whether all occurrences are bound, as an array.
    public var isArray = false
  }

  /// The required scheme, in lower case; nil for any.
  public let scheme: String?
  /// The components before the tail.
  public let components: [Component]
  /// The key of the remaining components, joined by `/`; nil if no further components may follow.
  public let tail: String?
  /// The parameters of the query.
  public let parameters: [Parameter]
  /// Whether there may be no remaining components.
  public var isTailOptional = false

  /// The numbers of components of the URLs that match.
  var lengths: ClosedRange<Int> {
    let count = components.count
    if tail != nil { return (isTailOptional ? count : count + 1)...Int.max }
    return (components.last?.isOptional == true ? count - 1 : count)...count
  }
}

extension RoutePattern {
  /// Parses a pattern.
  /// - Throws: EINVAL with the offset; E2BIG.
  public init(_ text: [UInt8]) throws(RoutingError) { try self.init(text.span) }

  init(_ text: Span<UInt8>) throws(RoutingError) {
    var parser = PatternParser()
    self = try parser.parse(text)
  }

  /// Parses a pattern.
  /// - Throws: EINVAL with the offset; E2BIG.
  public init(_ text: String) throws(RoutingError) { try self.init(Array(text.utf8)) }
  /// The canonical text, which has no whitespace and parses as an equal pattern.
  public var description: String {
    var parts = components.map { Self.written($0.type, isOptional: $0.isOptional, key: $0.key) }
    if let tail { parts.append("\(isTailOptional ? "**" : "*"):\(tail)") }
    let query = parameters.map {
      Self.encoded($0.name, inName: true) + "="
        + Self.written($0.type, isOptional: $0.isOptional, isArray: $0.isArray, key: $0.key)
    }
    return (scheme.map { "\($0)://" } ?? "") + parts.joined(separator: "/")
      + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
  }

  /// The bytes of ``description``.
  var size: Int {
    var size = scheme.map { $0.utf8.count + 3 } ?? 0
    for component in components {
      size += Self.size(component.type, component.isOptional, key: component.key)
    }
    if let tail { size += (isTailOptional ? 3 : 2) + tail.utf8.count }
    size += max(0, components.count + (tail == nil ? 0 : 1) - 1)
    for parameter in parameters {
      // The `?` or `&` before it, and its `=`.
      size += 2 + Self.encodedSize(parameter.name, inName: true) + (parameter.isArray ? 2 : 0)
      size += Self.size(parameter.type, parameter.isOptional, key: parameter.key)
    }
    return size
  }

  private static func size(_ type: ValueType, _ isOptional: Bool, key: String) -> Int {
    var size = 2 + (isOptional ? 1 : 0) + key.utf8.count
    if case .literal(let literal) = type { size += 2 + encodedSize(literal, inName: false) }
    return size
  }

  private static func encodedSize(_ text: [UInt8], inName: Bool) -> Int {
    text.reduce(0) { $0 + (isEncoded($1, inName: inName) ? 3 : 1) }
  }

  private static func written(
    _ type: ValueType, isOptional: Bool, isArray: Bool = false, key: String
  ) -> String {
    let mark = (isOptional ? "?" : "") + (isArray ? "[]" : "")
    return switch type {
    case .text: "s\(mark):\(key)"
    case .integer: "i\(mark):\(key)"
    case .number: "f\(mark):\(key)"
    case .literal(let literal): "l\(mark):(\(encoded(literal, inName: false)))\(key)"
    }
  }

  /// Percent-encodes delimiters, spaces and control characters.
  private static func encoded(_ text: [UInt8], inName: Bool) -> String {
    var bytes: [UInt8] = []
    for byte in text {
      if isEncoded(byte, inName: inName) { bytes += PercentCoding.encoded(byte) } else { bytes.append(byte) }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func isEncoded(_ byte: UInt8, inName: Bool) -> Bool {
    switch byte {
    case 0...0x20, 0x7F, UInt8(ascii: "%"), UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "&"): true
    case UInt8(ascii: "="), UInt8(ascii: "#"): inName
    default: false
    }
  }
}
