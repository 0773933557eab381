struct JSONParser {
  private let text: [UInt8]
  private var offset = 0

  init(_ text: [UInt8]) { self.text = text }

  /// Whether only whitespace is left.
  mutating func isAtEnd() -> Bool { next() == nil }

  /// Parses a value that nests at most `depth` levels.
  mutating func value(depth: Int) -> JSONValue? {
    guard depth > 0, let first = next() else { return nil }
    switch first {
    case UInt8(ascii: "{"): return object(depth: depth)
    case UInt8(ascii: "["): return array(depth: depth)
    case UInt8(ascii: "\""): return string().map { .string($0) }
    case UInt8(ascii: "t"): return take("true") ? .boolean(true) : nil
    case UInt8(ascii: "f"): return take("false") ? .boolean(false) : nil
    case UInt8(ascii: "n"): return take("null") ? .null : nil
    default: return number()
    }
  }

  private mutating func object(depth: Int) -> JSONValue? {
    offset += 1
    var members: [String: JSONValue] = [:]
    if next() == UInt8(ascii: "}") { return skip(.object(members)) }
    while true {
      guard next() == UInt8(ascii: "\""), let name = string(), next() == UInt8(ascii: ":") else { return nil }
      offset += 1
      guard let value = value(depth: depth - 1) else { return nil }
      members[name] = value
      switch next() {
      case UInt8(ascii: ","): offset += 1
      case UInt8(ascii: "}"): return skip(.object(members))
      default: return nil
      }
    }
  }

  private mutating func array(depth: Int) -> JSONValue? {
    offset += 1
    var values: [JSONValue] = []
    if next() == UInt8(ascii: "]") { return skip(.array(values)) }
    while true {
      guard let value = value(depth: depth - 1) else { return nil }
      values.append(value)
      switch next() {
      case UInt8(ascii: ","): offset += 1
      case UInt8(ascii: "]"): return skip(.array(values))
      default: return nil
      }
    }
  }

  /// Parses the string whose opening quotation mark is here.
  private mutating func string() -> String? {
    offset += 1
    var bytes: [UInt8] = []
    while offset < text.count {
      let byte = text[offset]
      offset += 1
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

  /// Parses an escape sequence after its backslash.
  private mutating func escaped() -> Character? {
    guard offset < text.count else { return nil }
    offset += 1
    switch text[offset - 1] {
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

  /// Parses the four digits after `\u`, and the low surrogate's sequence after a high surrogate.
  private mutating func unicode() -> Unicode.Scalar? {
    guard let unit = unit() else { return nil }
    guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) }
    guard take("\\u"), let low = self.unit(), (0xDC00..<0xE000).contains(low) else { return nil }
    return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
  }

  private mutating func unit() -> UInt32? {
    guard offset + 4 <= text.count else { return nil }
    var unit: UInt32 = 0
    for byte in text[offset..<offset + 4] {
      guard let digit = PercentCoding.hexDigit(byte) else { return nil }
      unit = unit << 4 | UInt32(digit)
    }
    offset += 4
    return unit
  }

  private mutating func number() -> JSONValue? {
    let start = offset
    while offset < text.count, text[offset].isDigit || "+-.eE".utf8.contains(text[offset]) { offset += 1 }
    guard Self.isNumber(text[start..<offset]) else { return nil }
    let literal = String(decoding: text[start..<offset], as: UTF8.self)
    if let integer = Int64(literal) { return .integer(integer) }
    return Double(literal).flatMap { $0.isFinite ? .number($0) : nil }
  }

  /// Whether the literal is `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`.
  private static func isNumber(_ literal: ArraySlice<UInt8>) -> Bool {
    var rest = literal
    if rest.first == UInt8(ascii: "-") { rest.removeFirst() }
    let whole = rest.prefix(while: \.isDigit)
    guard !whole.isEmpty, whole.count == 1 || whole.first != UInt8(ascii: "0") else { return false }
    rest = rest.dropFirst(whole.count)
    if rest.first == UInt8(ascii: ".") {
      let decimals = rest.dropFirst().prefix(while: \.isDigit)
      if decimals.isEmpty { return false }
      rest = rest.dropFirst(1 + decimals.count)
    }
    guard let mark = rest.first else { return true }
    guard mark | 0x20 == UInt8(ascii: "e") else { return false }
    rest.removeFirst()
    if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest.removeFirst() }
    return !rest.isEmpty && rest.allSatisfy(\.isDigit)
  }

  /// Skips whitespace and returns the next byte without consuming it; nil at the end.
  private mutating func next() -> UInt8? {
    while offset < text.count, " \t\r\n".utf8.contains(text[offset]) { offset += 1 }
    return offset < text.count ? text[offset] : nil
  }

  /// Consumes the closing bracket of a value.
  private mutating func skip(_ value: JSONValue) -> JSONValue {
    offset += 1
    return value
  }

  /// Consumes a word if it is next.
  private mutating func take(_ word: String) -> Bool {
    guard text[offset...].starts(with: word.utf8) else { return false }
    offset += word.utf8.count
    return true
  }
}
