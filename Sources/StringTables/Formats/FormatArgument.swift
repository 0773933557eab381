/// A value for a format.
public enum FormatArgument: Sendable, Hashable {
  /// An integer.
  case integer(Int64)
  /// An integer without a sign.
  case unsigned(UInt64)
  /// A floating-point number.
  case number(Double)
  /// A text.
  case text(String)

  /// The integer without its sign, by which a plural form is chosen; nil for numbers with decimals and for texts.
  var magnitude: UInt64? {
    switch self {
    case .integer(let value): value.magnitude
    case .unsigned(let value): value
    case .number(let value): UInt64(exactly: value.magnitude)
    case .text: nil
    }
  }

  var isNumber: Bool { if case .text = self { false } else { true } }

  var text: String {
    switch self {
    case .integer(let value): String(value)
    case .unsigned(let value): String(value)
    case .number(let value): String(value)
    case .text(let text): text
    }
  }
}
