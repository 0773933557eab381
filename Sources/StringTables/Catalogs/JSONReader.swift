import PropertyLists

/// Reads JSON (RFC 8259), the members of objects one by one, so that a file takes no more memory than what is kept of it.
///
/// Of the values, numbers beyond 64 bits and `null` are `unknown`.
struct JSONReader {
  typealias Failure = ParseFailure

  /// The most levels of arrays and objects.
  static let maxDepth = 64

  private var scanner: ByteScanner
  private var depth = 0

  /// - Parameter text: in UTF-8.
  init(_ text: [UInt8]) { scanner = ByteScanner(text) }

  /// Reads an object. The body reads the value of each member.
  mutating func object(_ body: (inout JSONReader, String) throws(Failure) -> Void) throws(Failure) {
    try collection("{", "}") { reader throws(Failure) in
      guard let quote = reader.next(), quote == UInt8(ascii: "\"") else {
        throw reader.failure("a key in quotation marks is missing")
      }
      let key = try reader.string()
      if reader.next() != UInt8(ascii: ":") { throw reader.failure("':' is missing") }
      _ = reader.scanner.pop()
      try body(&reader, key)
    }
  }

  /// Reads a value.
  mutating func value() throws(Failure) -> PropertyListValue {
    switch next() {
    case UInt8(ascii: "{")?:
      var members: [PropertyListDictionary.Member] = []
      try object { reader, key throws(Failure) in members.append(.init(key: key, value: try reader.value())) }
      return .dictionary(PropertyListDictionary(members: members))
    case UInt8(ascii: "[")?:
      var values: [PropertyListValue] = []
      try collection("[", "]") { reader throws(Failure) in values.append(try reader.value()) }
      return .array(values)
    case UInt8(ascii: "\"")?: return .string(try string())
    default: return try scalar()
    }
  }

  /// Whether the next value is an object.
  mutating func isAtObject() -> Bool { next() == UInt8(ascii: "{") }

  /// - Throws: if there is text behind the outermost value.
  mutating func end() throws(Failure) {
    if next() != nil { throw failure("text after the end") }
  }

  func failure(_ reason: String) -> Failure {
    Failure(reason: reason, offset: scanner.offset, isAtEnd: scanner.next == nil)
  }

  // MARK: - Structure

  private mutating func collection(
    _ open: StaticString, _ close: StaticString, _ element: (inout JSONReader) throws(Failure) -> Void
  ) throws(Failure) {
    skipSpace()
    guard scanner.take(open) else { throw failure("'\(open)' is missing") }
    depth += 1
    if depth > Self.maxDepth { throw failure("more than \(Self.maxDepth) levels") }
    skipSpace()
    if !scanner.take(close) {
      repeat {
        try element(&self)
        skipSpace()
      } while scanner.take(",")
      if !scanner.take(close) { throw failure("',' or '\(close)' is missing") }
    }
    depth -= 1
  }

  /// Skips space; the next byte is not consumed.
  private mutating func next() -> UInt8? {
    skipSpace()
    return scanner.next
  }

  private mutating func skipSpace() {
    scanner.skip { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
  }

  // MARK: - Scalars

  private mutating func scalar() throws(Failure) -> PropertyListValue {
    if scanner.take("true") { return .boolean(true) }
    if scanner.take("false") { return .boolean(false) }
    if scanner.take("null") { return .unknown }
    let start = scanner.offset
    scanner.skip { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
    let literal = String(decoding: scanner.text[start..<scanner.offset], as: UTF8.self)
    if literal.isEmpty { throw failure("a value is missing") }
    // Longer ones have no use, and take time.
    if literal.utf8.count > 64 { return .unknown }
    if let integer = Int64(literal) { return .integer(integer) }
    guard let number = Double(literal) else { throw Failure(reason: "not a number", offset: start) }
    return .real(number)
  }

  /// Reads the string whose quotation mark is next.
  private mutating func string() throws(Failure) -> String {
    let opening = scanner.offset
    _ = scanner.pop()
    var text: [UInt8] = []
    while true {
      let start = scanner.offset
      scanner.skip { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") && $0 >= 0x20 }
      let piece = scanner.text[start..<scanner.offset]
      switch scanner.pop() {
      case UInt8(ascii: "\"")?:
        return text.isEmpty
          ? String(decoding: piece, as: UTF8.self) : String(decoding: text + piece, as: UTF8.self)
      case UInt8(ascii: "\\")?:
        text += piece
        try appendEscaped(to: &text)
      case nil: throw Failure(reason: "a string is not closed", offset: opening, isAtEnd: true)
      default: throw Failure(reason: "a control character in a string", offset: scanner.offset - 1)
      }
    }
  }

  private mutating func appendEscaped(to text: inout [UInt8]) throws(Failure) {
    switch scanner.pop() {
    case UInt8(ascii: "n")?: text.append(0x0A)
    case UInt8(ascii: "t")?: text.append(0x09)
    case UInt8(ascii: "r")?: text.append(0x0D)
    case UInt8(ascii: "b")?: text.append(0x08)
    case UInt8(ascii: "f")?: text.append(0x0C)
    case let byte? where "\"\\/".utf8.contains(byte): text.append(byte)
    case UInt8(ascii: "u")?: text += Array(String(Character(try character())).utf8)
    default: throw failure("an unknown escape sequence")
    }
  }

  /// Half of a surrogate pair is U+FFFD.
  private mutating func character() throws(Failure) -> Unicode.Scalar {
    let unit = try codeUnit()
    guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) ?? "\u{FFFD}" }
    let afterFirst = scanner
    if scanner.take("\\u") {
      let second = try codeUnit()
      if (0xDC00..<0xE000).contains(second) {
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (second - 0xDC00)) ?? "\u{FFFD}"
      }
      scanner = afterFirst
    }
    return "\u{FFFD}"
  }

  private mutating func codeUnit() throws(Failure) -> UInt32 {
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = scanner.pop(), let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw failure("four hexadecimal digits are missing after '\\u'")
      }
      unit = unit << 4 | UInt32(digit)
    }
    return unit
  }
}
