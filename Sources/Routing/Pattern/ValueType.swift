/// The type of a component or of a parameter's value: a set of texts.
public enum ValueType: Hashable, Sendable {
  /// Any text.
  case text
  /// `-?[0-9]+` that fits 64 bits.
  case integer
  /// `-?[0-9]+(\.[0-9]+)?` that is a finite number.
  case number
  /// Exactly these bytes, percent-decoded: non-empty UTF-8.
  case literal([UInt8])

  func matches(_ text: Span<UInt8>) -> Bool {
    switch self {
    case .text: true
    case .integer: Numeral.isInteger(text)
    case .number: Numeral.isNumber(text)
    case .literal(let literal): text.isEqual(to: literal)
    }
  }

  /// Whether the other set is a subset.
  func covers(_ other: ValueType) -> Bool {
    switch (self, other) {
    case (.text, _), (.integer, .integer), (.number, .number), (.number, .integer): true
    case (_, .literal(let literal)): matches(literal.span)
    default: false
    }
  }

  /// Whether the sets have a common element.
  func intersects(_ other: ValueType) -> Bool {
    switch (self, other) {
    case (.literal(let literal), _): other.matches(literal.span)
    case (_, .literal(let literal)): matches(literal.span)
    default: true
    }
  }
}

extension Span<UInt8> {
  @inline(__always)
  func isEqual(to other: [UInt8]) -> Bool {
    guard count == other.count else { return false }
    for index in 0..<count where self[index] != other[index] { return false }
    return true
  }
}
