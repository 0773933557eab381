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
}
