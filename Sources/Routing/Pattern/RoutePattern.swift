/// What URLs a route takes, and what it binds of them:
///
///     [SCHEME://]COMPONENT/COMPONENT…[?PARAMETER&PARAMETER…]
///
/// A component is `s:Key` (any text), `i:Key` (an integer), `f:Key` (a number), `l:(text)Key` (exactly that
/// text) or, as the last, `*:Key` (one or more components, joined by `/`). A parameter is `name=` and one of
/// the first four; a `?` after the type's letter makes it optional.
///
/// The first `?` of a pattern begins its parameters. A literal's text ends at the last `)` before the end of
/// its component or parameter. Like a component of a URL it is percent-decoded after the splitting, so
/// `%2F`, `%3F`, `%26` and `%25` write `/`, `?`, `&` and `%`; so are the names of parameters.
///
/// A required parameter must be in the URL, and its first occurrence must fit. An optional one may be missing,
/// but must fit if it is there. Further occurrences are not looked at.
public struct RoutePattern: Hashable, Sendable {
  /// A component that is bound to a key.
  public struct Component: Hashable, Sendable {
    /// What it takes.
    public let type: ValueType
    /// The key in the result's userInfo.
    public let key: String
  }

  /// A parameter that is bound to a key.
  public struct Parameter: Hashable, Sendable {
    /// Its name, decoded.
    public let name: [UInt8]
    /// What it takes.
    public let type: ValueType
    /// Whether it may be missing.
    public let isOptional: Bool
    /// The key in the result's userInfo.
    public let key: String
  }

  /// The scheme that URLs must have, in lower case; nil: any.
  public let scheme: String?
  /// What the first components must be.
  public let components: [Component]
  /// The key of the components after those, joined by `/`; nil: there may be none.
  public let tail: String?
  /// What the query must have.
  public let parameters: [Parameter]

  init(scheme: String?, components: [Component], tail: String?, parameters: [Parameter]) {
    self.scheme = scheme
    self.components = components
    self.tail = tail
    self.parameters = parameters
  }

  /// Reads a pattern.
  /// - Throws: EINVAL with the place.
  public init(_ text: [UInt8]) throws(RoutingError) {
    var reader = PatternParser(text)
    self = try reader.read()
  }

  /// Reads a pattern.
  /// - Throws: EINVAL with the place.
  public init(_ text: String) throws(RoutingError) { try self.init(Array(text.utf8)) }
}

extension RoutePattern: CustomStringConvertible {
  /// The pattern, written in the one way in which it is always written. Reads back as an equal pattern, and
  /// has no blanks.
  public var description: String {
    var parts = components.map { Self.written($0.type, key: $0.key) }
    if let tail { parts.append("*:\(tail)") }
    let query = parameters.map {
      Self.encoded($0.name, inName: true) + "="
        + Self.written($0.type, isOptional: $0.isOptional, key: $0.key)
    }
    return (scheme.map { "\($0)://" } ?? "") + parts.joined(separator: "/")
      + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
  }

  private static func written(_ type: ValueType, isOptional: Bool = false, key: String) -> String {
    let mark = isOptional ? "?" : ""
    return switch type {
    case .text: "s\(mark):\(key)"
    case .integer: "i\(mark):\(key)"
    case .number: "f\(mark):\(key)"
    case .literal(let literal): "l\(mark):(\(encoded(literal, inName: false)))\(key)"
    }
  }

  /// Encodes what would end a text too early, and blanks and control characters.
  private static func encoded(_ text: [UInt8], inName: Bool) -> String {
    var bytes: [UInt8] = []
    for byte in text {
      let isMark = "%/?&".utf8.contains(byte) || (inName && "=#".utf8.contains(byte))
      bytes += byte <= 0x20 || byte == 0x7F || isMark ? PercentCoding.encoded(byte) : [byte]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
