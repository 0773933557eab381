/// What a pattern wants of a component or of a parameter's value. Each kind is a set of texts; the comparisons
/// below are those of the sets.
public enum ValueType: Hashable, Sendable {
  /// Any text.
  case text
  /// `-?[0-9]+` that fits 64 bits.
  case integer
  /// `-?[0-9]+(\.[0-9]+)?` that is a finite number.
  case number
  /// Exactly these bytes, percent-decoded; never empty, always UTF-8.
  case literal([UInt8])

  /// Whether the decoded text is one of these.
  func fits(_ text: Span<UInt8>) -> Bool {
    switch self {
    case .text: true
    case .integer: Numeral.isInteger(text)
    case .number: Numeral.isNumber(text)
    case .literal(let literal): text.isEqual(to: literal)
    }
  }

  /// Whether every text of the other is one of this.
  func covers(_ other: ValueType) -> Bool {
    switch (self, other) {
    case (.text, _), (.integer, .integer), (.number, .number), (.number, .integer): true
    case (_, .literal(let literal)): fits(literal.span)
    default: false
    }
  }

  /// Whether some text is one of both.
  func intersects(_ other: ValueType) -> Bool {
    switch (self, other) {
    case (.literal(let literal), _): other.fits(literal.span)
    case (_, .literal(let literal)): fits(literal.span)
    default: true
    }
  }
}

extension Span<UInt8> {
  /// Whether these are the same bytes.
  @inline(__always)
  func isEqual(to other: [UInt8]) -> Bool {
    guard count == other.count else { return false }
    for place in 0..<count where self[place] != other[place] { return false }
    return true
  }
}
