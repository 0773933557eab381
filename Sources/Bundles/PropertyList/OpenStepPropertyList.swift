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
      scanner.skip { $0 <= 0x20 || OpenStepEscape.hexDigit($0) != nil }
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
        if let encoded = character.utf8 { text?.append(contentsOf: encoded) }
        if let byte = character.byte { text?.append(byte) }
      } else {
        text?.append(byte)
      }
    }
    throw MalformedPropertyList()
  }
}

/// The escape sequences of the OpenStep format.
enum OpenStepEscape {
  /// A character, or a byte that stands for itself and may be the first of a character.
  struct Escaped {
    var utf8: Unicode.UTF8.EncodedScalar?
    var byte: UInt8?

    fileprivate init(_ byte: UInt8) { self.byte = byte }
    fileprivate init(_ character: Unicode.Scalar) { utf8 = UTF8.encode(character) }
  }

  /// Parses what follows a backslash.
  static func parse(_ scanner: inout ByteScanner) throws(MalformedPropertyList) -> Escaped {
    guard let byte = scanner.pop() else { throw MalformedPropertyList() }
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "7"): return octal(byte, &scanner)
    case UInt8(ascii: "U"): return Escaped(utf16(&scanner))
    case UInt8(ascii: "a"): return Escaped(7)
    case UInt8(ascii: "b"): return Escaped(8)
    case UInt8(ascii: "t"): return Escaped(9)
    case UInt8(ascii: "n"): return Escaped(10)
    case UInt8(ascii: "v"): return Escaped(11)
    case UInt8(ascii: "f"): return Escaped(12)
    case UInt8(ascii: "r"): return Escaped(13)
    default: return Escaped(byte)
    }
  }

  /// Up to three octal digits, for a character of the NeXTSTEP encoding.
  private static func octal(_ first: UInt8, _ scanner: inout ByteScanner) -> Escaped {
    var value = Int(first - UInt8(ascii: "0"))
    for _ in 0..<2 {
      guard let digit = scanner.next, (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(digit) else { break }
      _ = scanner.pop()
      value = value << 3 | Int(digit - UInt8(ascii: "0"))
    }
    value &= 0xFF
    return value < 0x80 ? Escaped(UInt8(value)) : Escaped(upperHalf[value - 0x80])
  }

  /// Up to four hexadecimal digits after `\U`: a UTF-16 code unit. A high surrogate takes the next one with it; one
  /// that is alone becomes U+FFFD.
  private static func utf16(_ scanner: inout ByteScanner) -> Unicode.Scalar {
    let first = unit(&scanner)
    if let character = Unicode.Scalar(first) { return character }
    var following = scanner
    guard first < 0xDC00, following.take("\\U") else { return "\u{FFFD}" }
    let second = unit(&following)
    guard (0xDC00..<0xE000).contains(second) else { return "\u{FFFD}" }
    scanner = following
    return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)) ?? "\u{FFFD}"
  }

  private static func unit(_ scanner: inout ByteScanner) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = scanner.next.flatMap(hexDigit) else { break }
      _ = scanner.pop()
      value = value << 4 | digit
    }
    return value
  }

  static func hexDigit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(byte - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(byte - UInt8(ascii: "A")) + 10
    default: nil
    }
  }

  /// The upper half of the NeXTSTEP encoding.
  private static let upperHalf = Array(
    ("\u{A0}ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖÙÚÛÜÝÞµ×÷©¡¢£⁄¥ƒ§¤’“«‹›ﬁﬂ®–†‡·¦¶•‚„”»…‰¬¿¹ˋ´ˆ˜¯˘˙¨²˚¸³˝˛ˇ"
      + "—±¼½¾àáâãäåçèéêëìÆíªîïðñŁØŒºòóôõöæùúûıüýłøœßþÿ\u{FFFD}\u{FFFD}").unicodeScalars)
}
