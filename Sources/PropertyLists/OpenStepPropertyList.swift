/// A property list in the OpenStep format: `{ Key = "value"; List = (a, b); Data = <0fbd77>; }`.
struct OpenStepPropertyList {
  private var scanner: ByteScanner
  private var builder = PropertyListBuilder()
  /// Whether the outermost dictionary has braces, unlike in `.strings` files.
  private var hasBraces = false

  init(_ scanner: ByteScanner) { self.scanner = scanner }

  /// - Returns: what was built and, if the text is malformed, why and where.
  mutating func parse() -> (PropertyListBuilder, (String, Int)?) {
    do throws(MalformedPropertyList) {
      try parseAll()
      return (builder, nil)
    } catch {
      return (builder, (error.reason, scanner.offset))
    }
  }

  private mutating func parseAll() throws(MalformedPropertyList) {
    skipSpace()
    if scanner.next == nil { throw MalformedPropertyList("no content") }
    hasBraces = scanner.take("{")
    try builder.beginDictionary()
    while !builder.isComplete { try builder.isInArray ? parseElement() : parseMember() }
    skipSpace()
    guard scanner.next == nil else { throw MalformedPropertyList("more text after the end") }
  }

  /// Skips whitespace and comments.
  private mutating func skipSpace() {
    while true {
      scanner.skipWhitespace()
      if scanner.take("//") {
        scanner.skip { $0 != 0x0A && $0 != 0x0D }
      } else if scanner.take("/*") {
        _ = scanner.skip(past: "*/")
      } else {
        return
      }
    }
  }

  /// Parses `key = value;`, `key;`, or the end of the dictionary.
  private mutating func parseMember() throws(MalformedPropertyList) {
    skipSpace()
    if scanner.next == nil, !hasBraces, builder.depth == 1 { return try builder.end(array: false) }
    if scanner.take("}") {
      try builder.end(array: false)
      // A stray brace in a `.strings` file.
      if builder.isComplete, !hasBraces { throw MalformedPropertyList("} without {") }
      return try endValue()
    }
    let key = try string()
    try builder.add(key: key)
    skipSpace()
    if scanner.take("=") { return try parseValue() }
    // The key is the value too.
    try builder.add(.string(String(decoding: key, as: UTF8.self)))
    try endValue()
  }

  /// Parses an element of an array, or its end.
  private mutating func parseElement() throws(MalformedPropertyList) {
    skipSpace()
    if !scanner.take(")") { return try parseValue() }
    try builder.end(array: true)
    try endValue()
  }

  /// Parses a scalar, or the beginning of a collection.
  private mutating func parseValue() throws(MalformedPropertyList) {
    skipSpace()
    if scanner.take("{") { return try builder.beginDictionary() }
    if scanner.take("(") { return try builder.beginArray() }
    if scanner.take("<") {
      try builder.add(.data(try data()))
    } else {
      try builder.add(.string(String(decoding: try string(), as: UTF8.self)))
    }
    try endValue()
  }

  /// Parses hexadecimal digits up to `>`.
  private mutating func data() throws(MalformedPropertyList) -> [UInt8] {
    let start = scanner.offset
    scanner.skip { $0 <= 0x20 || OpenStepEscape.hexDigit($0) != nil }
    let digits = scanner.text[start..<scanner.offset].compactMap(OpenStepEscape.hexDigit)
    guard scanner.take(">") else { throw MalformedPropertyList("no hexadecimal digit") }
    return stride(from: 0, to: digits.count, by: 2).map { index in
      UInt8(digits[index] << 4 | (index + 1 < digits.count ? digits[index + 1] : 0))
    }
  }

  /// Parses the separator after a value.
  private mutating func endValue() throws(MalformedPropertyList) {
    if builder.isComplete { return }
    skipSpace()
    if builder.isInArray {
      guard scanner.take(",") || scanner.next == UInt8(ascii: ")") else {
        throw MalformedPropertyList(", or ) is missing")
      }
    } else {
      guard scanner.take(";") else { throw MalformedPropertyList("; is missing") }
    }
  }

  // MARK: - Strings

  private mutating func string() throws(MalformedPropertyList) -> [UInt8] {
    if scanner.take("\"") { return try quoted(UInt8(ascii: "\"")) }
    if scanner.take("'") { return try quoted(UInt8(ascii: "'")) }
    let start = scanner.offset
    scanner.skip(while: Self.isUnquoted)
    if scanner.offset == start { throw MalformedPropertyList("a string is missing") }
    return Array(scanner.text[start..<scanner.offset])
  }

  private static func isUnquoted(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "_$/:.-".utf8.contains(byte)
    }
  }

  private mutating func quoted(_ quote: UInt8) throws(MalformedPropertyList) -> [UInt8] {
    var text: [UInt8] = []
    while let byte = scanner.pop() {
      if byte == quote { return text }
      if byte == UInt8(ascii: "\\") {
        guard let character = OpenStepEscape.parse(&scanner) else { break }
        character.append(to: &text)
      } else {
        text.append(byte)
      }
    }
    throw MalformedPropertyList("a quoted string is not closed")
  }
}
