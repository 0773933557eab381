/// A value of a JSON text (RFC 8259), with the kinds of number that ``JSONText`` tells apart.
public enum JSONValue: Hashable, Sendable {
  /// A text.
  case text(String)
  /// A number without point and exponent that fits 64 bits.
  case integer(Int64)
  /// Any other number: the nearest one.
  case number(Double)
  /// `true` or `false`.
  case truth(Bool)
  /// `null`.
  case null
  /// An array.
  case array([JSONValue])
  /// An object; of a name that repeats, the last member counts.
  case object([String: JSONValue])

  /// Reads a whole text.
  /// - Returns: nil for what is no JSON, nests deeper than 64 levels, or has a number beyond Double's.
  public init?(_ text: [UInt8]) {
    var reader = JSONReader(text)
    guard let value = reader.value(depth: 64), reader.isAtEnd() else { return nil }
    self = value
  }

  /// The member of an object; nil if it has none of that name, or is none.
  public subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members[name]
  }

  /// The text; nil if it is something else.
  public var text: String? {
    guard case .text(let text) = self else { return nil }
    return text
  }
}

/// Reads JSON, value by value.
private struct JSONReader {
  private let text: [UInt8]
  private var place = 0

  init(_ text: [UInt8]) { self.text = text }

  /// Whether nothing but blanks is left.
  mutating func isAtEnd() -> Bool { next() == nil }

  /// The value that begins here, which may nest so many levels; nil if none does.
  mutating func value(depth: Int) -> JSONValue? {
    guard depth > 0, let first = next() else { return nil }
    switch first {
    case UInt8(ascii: "{"): return object(depth: depth)
    case UInt8(ascii: "["): return array(depth: depth)
    case UInt8(ascii: "\""): return string().map { .text($0) }
    case UInt8(ascii: "t"): return take("true") ? .truth(true) : nil
    case UInt8(ascii: "f"): return take("false") ? .truth(false) : nil
    case UInt8(ascii: "n"): return take("null") ? .null : nil
    default: return number()
    }
  }

  private mutating func object(depth: Int) -> JSONValue? {
    place += 1
    var members: [String: JSONValue] = [:]
    if next() == UInt8(ascii: "}") { return skip(.object(members)) }
    while true {
      guard next() == UInt8(ascii: "\""), let name = string(), next() == UInt8(ascii: ":") else { return nil }
      place += 1
      guard let value = value(depth: depth - 1) else { return nil }
      members[name] = value
      switch next() {
      case UInt8(ascii: ","): place += 1
      case UInt8(ascii: "}"): return skip(.object(members))
      default: return nil
      }
    }
  }

  private mutating func array(depth: Int) -> JSONValue? {
    place += 1
    var values: [JSONValue] = []
    if next() == UInt8(ascii: "]") { return skip(.array(values)) }
    while true {
      guard let value = value(depth: depth - 1) else { return nil }
      values.append(value)
      switch next() {
      case UInt8(ascii: ","): place += 1
      case UInt8(ascii: "]"): return skip(.array(values))
      default: return nil
      }
    }
  }

  /// The text whose first quotation mark is here.
  private mutating func string() -> String? {
    place += 1
    var bytes: [UInt8] = []
    while place < text.count {
      let byte = text[place]
      place += 1
      switch byte {
      case UInt8(ascii: "\""): return String(validating: bytes, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let character = escaped() else { return nil }
        bytes += Array(String(character).utf8)
      case 0..<0x20: return nil
      default: bytes.append(byte)
      }
    }
    return nil
  }

  /// The character for which the escape stands whose backslash was just read.
  private mutating func escaped() -> Character? {
    guard place < text.count else { return nil }
    place += 1
    switch text[place - 1] {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): return unicode().map(Character.init)
    default: return nil
    }
  }

  /// The character of four hexadecimal digits, or of two such escapes that are its surrogates.
  private mutating func unicode() -> Unicode.Scalar? {
    guard let unit = unit() else { return nil }
    guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) }
    guard take("\\u"), let low = self.unit(), (0xDC00..<0xE000).contains(low) else { return nil }
    return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
  }

  private mutating func unit() -> UInt32? {
    guard place + 4 <= text.count else { return nil }
    var unit: UInt32 = 0
    for byte in text[place..<place + 4] {
      guard let digit = PercentCoding.digit(byte) else { return nil }
      unit = unit << 4 | UInt32(digit)
    }
    place += 4
    return unit
  }

  private mutating func number() -> JSONValue? {
    let start = place
    while place < text.count, Self.isPartOfNumber(text[place]) { place += 1 }
    let written = text[start..<place]
    guard Self.isNumber(written) else { return nil }
    let literal = String(decoding: written, as: UTF8.self)
    if let integer = Int64(literal) { return .integer(integer) }
    return Double(literal).flatMap { $0.isFinite ? .number($0) : nil }
  }

  private static func isPartOfNumber(_ byte: UInt8) -> Bool {
    isDigit(byte) || "+-.eE".utf8.contains(byte)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

  /// Whether it is `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`.
  private static func isNumber(_ literal: ArraySlice<UInt8>) -> Bool {
    var rest = literal
    if rest.first == UInt8(ascii: "-") { rest.removeFirst() }
    let whole = rest.prefix(while: isDigit)
    guard !whole.isEmpty, whole.count == 1 || whole.first != UInt8(ascii: "0") else { return false }
    rest = rest.dropFirst(whole.count)
    if rest.first == UInt8(ascii: ".") {
      let decimals = rest.dropFirst().prefix(while: isDigit)
      if decimals.isEmpty { return false }
      rest = rest.dropFirst(1 + decimals.count)
    }
    guard let mark = rest.first else { return true }
    guard mark | 0x20 == UInt8(ascii: "e") else { return false }
    rest.removeFirst()
    if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest.removeFirst() }
    return !rest.isEmpty && rest.allSatisfy(isDigit)
  }

  /// The next byte that is no blank, which is not passed; nil at the end.
  private mutating func next() -> UInt8? {
    while place < text.count, " \t\r\n".utf8.contains(text[place]) { place += 1 }
    return place < text.count ? text[place] : nil
  }

  /// Passes one byte; then the value is whole.
  private mutating func skip(_ value: JSONValue) -> JSONValue {
    place += 1
    return value
  }

  /// Passes a word, if it stands here.
  private mutating func take(_ word: String) -> Bool {
    guard text[place...].starts(with: word.utf8) else { return false }
    place += word.utf8.count
    return true
  }
}
