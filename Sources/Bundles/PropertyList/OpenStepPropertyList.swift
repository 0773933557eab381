/// A property list in the OpenStep format: `{ Key = "value"; List = (a, b); Data = <0fbd77>; }`.
struct OpenStepPropertyList {
  private var scanner: ByteScanner
  private var builder: PropertyListBuilder
  /// Whether the outermost dictionary has braces, unlike in `.strings` files.
  private var hasBraces = false

  init(_ scanner: ByteScanner, _ builder: PropertyListBuilder) {
    (self.scanner, self.builder) = (scanner, builder)
  }

  mutating func parse() throws(MalformedPropertyList) -> [String: String] {
    skipSpace()
    if scanner.next == nil { throw MalformedPropertyList() }
    hasBraces = scanner.take("{")
    try builder.beginDictionary()
    while !builder.isComplete { try builder.isInArray ? parseElement() : parseMember() }
    skipSpace()
    guard scanner.next == nil else { throw MalformedPropertyList() }
    return builder.strings
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
      if builder.isComplete, !hasBraces { throw MalformedPropertyList() }
      return try endValue()
    }
    let key = try string()
    try builder.add(key: key ?? [])
    skipSpace()
    if scanner.take("=") { return try parseValue() }
    // The key is the value too.
    try builder.add(value: key)
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
      scanner.skip { $0 <= 0x20 || Character(Unicode.Scalar($0)).isHexDigit }
      guard scanner.take(">") else { throw MalformedPropertyList() }
      try builder.add(value: nil)
    } else {
      try builder.add(value: try string())
    }
    try endValue()
  }

  /// Parses the separator after a value.
  private mutating func endValue() throws(MalformedPropertyList) {
    if builder.isComplete { return }
    skipSpace()
    if builder.isInArray {
      guard scanner.take(",") || scanner.next == UInt8(ascii: ")") else { throw MalformedPropertyList() }
    } else {
      guard scanner.take(";") else { throw MalformedPropertyList() }
    }
  }

  // MARK: - Strings

  /// - Returns: the string; nil if the builder does not need it.
  private mutating func string() throws(MalformedPropertyList) -> [UInt8]? {
    if scanner.take("\"") { return try quoted(UInt8(ascii: "\"")) }
    if scanner.take("'") { return try quoted(UInt8(ascii: "'")) }
    let start = scanner.offset
    scanner.skip(while: Self.isUnquoted)
    if scanner.offset == start { throw MalformedPropertyList() }
    return builder.needsString ? Array(scanner.text[start..<scanner.offset]) : nil
  }

  private static func isUnquoted(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "_$/:.-".utf8.contains(byte)
    }
  }

  private mutating func quoted(_ quote: UInt8) throws(MalformedPropertyList) -> [UInt8]? {
    var text: [UInt8]? = builder.needsString ? [] : nil
    while let byte = scanner.pop() {
      if byte == quote { return text }
      if byte == UInt8(ascii: "\\") {
        let character = try OpenStepEscape.parse(&scanner)
        text?.append(contentsOf: character)
      } else {
        text?.append(byte)
      }
    }
    throw MalformedPropertyList()
  }
}

/// The escape sequences of the OpenStep format.
enum OpenStepEscape {
  /// Parses what follows a backslash.
  static func parse(_ scanner: inout ByteScanner) throws(MalformedPropertyList) -> [UInt8] {
    guard let byte = scanner.pop() else { throw MalformedPropertyList() }
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "7"): return octal(byte, &scanner)
    case UInt8(ascii: "U"): return utf16(&scanner)
    case UInt8(ascii: "a"): return [7]
    case UInt8(ascii: "b"): return [8]
    case UInt8(ascii: "t"): return [9]
    case UInt8(ascii: "n"): return [10]
    case UInt8(ascii: "v"): return [11]
    case UInt8(ascii: "f"): return [12]
    case UInt8(ascii: "r"): return [13]
    default: return [byte]
    }
  }

  /// Up to three octal digits, for a character of the NeXTSTEP encoding.
  private static func octal(_ first: UInt8, _ scanner: inout ByteScanner) -> [UInt8] {
    var value = Int(first - UInt8(ascii: "0"))
    for _ in 0..<2 {
      guard let digit = scanner.next, (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(digit) else { break }
      _ = scanner.pop()
      value = value << 3 | Int(digit - UInt8(ascii: "0"))
    }
    value &= 0xFF
    return value < 0x80 ? [UInt8(value)] : upperHalf[value - 0x80]
  }

  /// Up to four hexadecimal digits after `\U`: a UTF-16 code unit. A high surrogate takes the next one with it.
  private static func utf16(_ scanner: inout ByteScanner) -> [UInt8] {
    var units = [unit(&scanner)]
    if (0xD800..<0xDC00).contains(units[0]), scanner.take("\\U") { units.append(unit(&scanner)) }
    return Array(String(decoding: units, as: UTF16.self).utf8)
  }

  private static func unit(_ scanner: inout ByteScanner) -> UInt16 {
    var value: UInt16 = 0
    for _ in 0..<4 {
      guard let digit = scanner.next.flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else { break }
      _ = scanner.pop()
      value = value << 4 | UInt16(digit)
    }
    return value
  }

  /// The upper half of the NeXTSTEP encoding, each character in UTF-8.
  private static let upperHalf: [[UInt8]] =
    ("\u{A0}ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖÙÚÛÜÝÞµ×÷©¡¢£⁄¥ƒ§¤’“«‹›ﬁﬂ®–†‡·¦¶•‚„”»…‰¬¿¹ˋ´ˆ˜¯˘˙¨²˚¸³˝˛ˇ"
    + "—±¼½¾àáâãäåçèéêëìÆíªîïðñŁØŒºòóôõöæùúûıüýłøœßþÿ\u{FFFD}\u{FFFD}").unicodeScalars.map {
      Array(String($0).utf8)
    }
}
