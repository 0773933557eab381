import PropertyLists

/// Parses the text format of `.strings` files.
struct StringsParser {
  typealias Failure = ParseFailure

  private var scanner: ByteScanner
  /// The entries that were parsed.
  private(set) var table = StringTable()
  /// The comments that wait for the next key.
  private var comments: [UInt8] = []

  /// - Parameter text: in UTF-8.
  init(_ text: [UInt8]) { scanner = ByteScanner(text) }

  /// - Returns: nil if the whole text was parsed.
  mutating func parse() -> Failure? {
    do throws(Failure) {
      try parseTable()
      return nil
    } catch {
      return error
    }
  }

  private mutating func parseTable() throws(Failure) {
    try skipSpace()
    let hasBraces = scanner.take("{")
    try skipSpace()
    while let byte = scanner.next, byte != UInt8(ascii: "}") { try parseEntry() }
    if hasBraces, !scanner.take("}") { throw failure("'}' is missing") }
    try skipSpace()
    if scanner.next != nil { throw failure(hasBraces ? "text after the table" : "'}' without a '{'") }
  }

  /// Parses `key = value;` or `key;`, and the space behind it.
  private mutating func parseEntry() throws(Failure) {
    let key = try string("a key")
    var entry = StringTable.Entry(key: key, value: key, comment: takeComments())
    try skipSpace(keepsComments: false)
    if scanner.take("=") {
      entry.value = try value()
      let end = scanner.offset
      try skipSpace(keepsComments: false)
      if !scanner.take(";") {
        // The entry is whole.
        table.set(entry)
        throw Failure(reason: "';' is missing", offset: end, isAtEnd: scanner.next == nil)
      }
    } else if !scanner.take(";") {
      throw failure("'=' or ';' is missing")
    }
    table.set(entry)
    try skipRestOfLine()
    if isAtLineEnd, let trailing = takeComments() {
      entry.comment = entry.comment.map { $0 + "\n" + trailing } ?? trailing
      table.set(entry)
    }
    try skipSpace()
  }

  private mutating func value() throws(Failure) -> String {
    try skipSpace(keepsComments: false)
    // The collections and the data of property lists.
    if let byte = scanner.next, "{(<".utf8.contains(byte) { throw failure("a value that is not a string") }
    return try string("a value")
  }

  private func failure(_ reason: String) -> Failure {
    Failure(reason: reason, offset: scanner.offset, isAtEnd: scanner.next == nil)
  }

  // MARK: - Space

  private mutating func takeComments() -> String? {
    if comments.isEmpty { return nil }
    defer { comments.removeAll() }
    return String(decoding: comments, as: UTF8.self)
  }

  /// Skips whitespace and comments.
  private mutating func skipSpace(keepsComments: Bool = true) throws(Failure) {
    while true {
      skipWhitespace()
      guard try takeComment(isKept: keepsComments) else { return }
    }
  }

  /// Skips the space and comments of a line, up to the first that follows a line break.
  private mutating func skipRestOfLine() throws(Failure) {
    repeat {
      scanner.skip { $0 == 0x20 || $0 == 0x09 }
    } while try takeComment(isKept: true)
  }

  private var isAtLineEnd: Bool { scanner.next.map { $0 == 0x0A || $0 == 0x0D } ?? true }

  /// Whitespace of ASCII, and the separators of lines and paragraphs, U+2028 and U+2029.
  private mutating func skipWhitespace() {
    repeat { scanner.skipWhitespace() } while scanner.take("\u{2028}") || scanner.take("\u{2029}")
  }

  private mutating func takeComment(isKept: Bool) throws(Failure) -> Bool {
    let start = scanner.offset
    if scanner.take("//") {
      scanner.skip { $0 != 0x0A && $0 != 0x0D }
    } else if scanner.take("/*") {
      guard scanner.skip(past: "*/") else {
        throw Failure(reason: "a comment is not closed", offset: start, isAtEnd: true)
      }
    } else {
      return false
    }
    if isKept {
      if !comments.isEmpty { comments.append(0x0A) }
      comments += scanner.text[start..<scanner.offset]
    }
    return true
  }

  // MARK: - Strings

  /// - Parameter expected: what the string is, for the error.
  private mutating func string(_ expected: String) throws(Failure) -> String {
    let start = scanner.offset
    if scanner.take(UInt8(ascii: "\"")) { return try quoted(UInt8(ascii: "\""), from: start) }
    if scanner.take(UInt8(ascii: "'")) { return try quoted(UInt8(ascii: "'"), from: start) }
    scanner.skip(while: Self.isUnquoted)
    if scanner.offset == start {
      throw failure("\(expected) is missing; other texts than a.b-c_d need quotes")
    }
    return String(decoding: scanner.text[start..<scanner.offset], as: UTF8.self)
  }

  private static func isUnquoted(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "-")...UInt8(ascii: ":"), UInt8(ascii: "_"), UInt8(ascii: "$"):
      // Between - and : are the digits, the dot and the slash.
      true
    default: false
    }
  }

  private mutating func quoted(_ quote: UInt8, from opening: Int) throws(Failure) -> String {
    var text: [UInt8] = []
    while true {
      let start = scanner.offset
      scanner.skip { $0 != quote && $0 != UInt8(ascii: "\\") }
      let end = scanner.offset
      switch scanner.pop() {
      case quote?:
        if text.isEmpty { return String(decoding: scanner.text[start..<end], as: UTF8.self) }
        text += scanner.text[start..<end]
        return String(decoding: text, as: UTF8.self)
      case .some:
        text += scanner.text[start..<end]
        if let escaped = OpenStepEscape.parse(&scanner, allowsLowercase: true) { escaped.append(to: &text) }
      case nil: throw Failure(reason: "a quoted string is not closed", offset: opening, isAtEnd: true)
      }
    }
  }
}
