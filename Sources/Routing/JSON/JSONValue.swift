/// A JSON value (RFC 8259). Like ``JSONWriter``, it distinguishes integers from other numbers.
public enum JSONValue: Hashable, Sendable {
  /// A string.
  case string(String)
  /// A number without a point or an exponent that fits 64 bits.
  case integer(Int64)
  /// Any other number, rounded to the nearest `Double`.
  case number(Double)
  /// `true` or `false`.
  case boolean(Bool)
  /// `null`.
  case null
  /// An array.
  case array([JSONValue])
  /// An object. If a name repeats, the last member wins.
  case object([String: JSONValue])

  /// Parses a whole text.
  /// - Returns: nil if the text is not JSON, nests deeper than 64 levels, or has a number out of `Double`'s range.
  public init?(_ text: [UInt8]) {
    var parser = JSONParser(text)
    guard let value = parser.value(depth: 64), parser.isAtEnd() else { return nil }
    self = value
  }

  /// A member of an object; nil if it is absent, or if the value is not an object.
  public subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members[name]
  }

  /// The string; nil for other values.
  public var string: String? {
    guard case .string(let string) = self else { return nil }
    return string
  }

  /// The integer; nil for other values, and beyond `Int`.
  public var int: Int? {
    guard case .integer(let integer) = self else { return nil }
    return Int(exactly: integer)
  }
}
