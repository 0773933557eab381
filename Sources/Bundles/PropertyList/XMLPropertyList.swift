/// An XML property list. Attributes and the document type are skipped.
struct XMLPropertyList {
  private var scanner: ByteScanner
  private var builder: PropertyListBuilder
  private var isInPlist = false

  init(_ scanner: ByteScanner, _ builder: PropertyListBuilder) {
    (self.scanner, self.builder) = (scanner, builder)
  }

  mutating func parse() throws(MalformedPropertyList) -> [String: String] {
    while !builder.isComplete || isInPlist { try parseMarkup() }
    return builder.strings
  }

  /// Parses what begins with `<`; text is only inside the elements of scalars.
  private mutating func parseMarkup() throws(MalformedPropertyList) {
    scanner.skipWhitespace()
    guard scanner.take("<") else { throw MalformedPropertyList() }
    if scanner.take("!--") {
      try skip(past: "-->")
    } else if scanner.take("?") {
      try skip(past: "?>")
    } else if scanner.take("!DOCTYPE") {
      try skipDocumentType()
    } else if scanner.take("/") {
      try endElement()
    } else {
      try beginElement()
    }
  }

  private mutating func skip(past word: StaticString) throws(MalformedPropertyList) {
    guard scanner.skip(past: word) else { throw MalformedPropertyList() }
  }

  /// Skips to the end of a document type declaration, which may have an internal subset in brackets.
  private mutating func skipDocumentType() throws(MalformedPropertyList) {
    guard !builder.hasRoot, !isInPlist else { throw MalformedPropertyList() }
    while let byte = scanner.pop() {
      switch byte {
      case UInt8(ascii: ">"): return
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        guard scanner.skip(past: byte) != nil else { throw MalformedPropertyList() }
      case UInt8(ascii: "["): try skipInternalSubset()
      default: break
      }
    }
    throw MalformedPropertyList()
  }

  private mutating func skipInternalSubset() throws(MalformedPropertyList) {
    while !scanner.take("]") {
      if scanner.take("<!--") {
        try skip(past: "-->")
      } else if scanner.take("<?") {
        try skip(past: "?>")
      } else {
        guard let byte = scanner.pop() else { throw MalformedPropertyList() }
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'"), scanner.skip(past: byte) == nil {
          throw MalformedPropertyList()
        }
      }
    }
  }

  // MARK: - Elements

  /// Parses a tag's name, after `<`, and skips its attributes. As in Foundation, the first `>` ends the tag.
  private mutating func tag() throws(MalformedPropertyList) -> (name: ArraySlice<UInt8>, isEmpty: Bool) {
    let start = scanner.offset
    guard let end = scanner.skip(past: UInt8(ascii: ">")) else { throw MalformedPropertyList() }
    let isEmpty = end > start && scanner.text[end - 1] == UInt8(ascii: "/")
    let content = scanner.text[start..<(isEmpty ? end - 1 : end)]
    return (content.prefix { $0 > 0x20 }, isEmpty)
  }

  private mutating func beginElement() throws(MalformedPropertyList) {
    let (name, isEmpty) = try tag()
    switch Element(name) {
    case .plist:
      guard !isInPlist, !isEmpty, !builder.hasRoot else { throw MalformedPropertyList() }
      isInPlist = true
    case .array:
      try builder.beginArray()
      if isEmpty { try builder.end(array: true) }
    case .dictionary:
      try builder.beginDictionary()
      if isEmpty { try builder.end(array: false) }
    case .key where builder.expectsKey: try builder.add(key: isEmpty ? [] : content(endingWith: name) ?? [])
    // Foundation takes a key in place of a value for a string.
    case .string, .key: try builder.add(value: isEmpty ? [] : content(endingWith: name))
    case .other:
      if !isEmpty { _ = try content(endingWith: name) }
      try builder.add(value: nil)
    case nil: throw MalformedPropertyList()
    }
  }

  private mutating func endElement() throws(MalformedPropertyList) {
    switch Element(try tag().name) {
    case .array: try builder.end(array: true)
    case .dictionary: try builder.end(array: false)
    case .plist:
      guard isInPlist, builder.isComplete else { throw MalformedPropertyList() }
      isInPlist = false
    default: throw MalformedPropertyList()
    }
  }

  private enum Element {
    case plist, array, dictionary, key, string, other

    init?(_ name: ArraySlice<UInt8>) {
      // Longer than any; decoding a name takes time in proportion to its length.
      if name.count > 8 { return nil }
      switch String(decoding: name, as: UTF8.self) {
      case "plist": self = .plist
      case "array": self = .array
      case "dict": self = .dictionary
      case "key": self = .key
      case "string": self = .string
      case "data", "date", "integer", "real", "true", "false": self = .other
      default: return nil
      }
    }
  }

  // MARK: - Text

  /// Parses the text up to the end tag, with entities and CDATA sections.
  /// - Returns: the text; nil if the builder does not need it.
  private mutating func content(
    endingWith name: ArraySlice<UInt8>
  ) throws(MalformedPropertyList) -> [UInt8]? {
    var text: [UInt8]? = builder.needsString ? [] : nil
    while let byte = scanner.pop() {
      switch byte {
      case UInt8(ascii: "&"):
        let character = try XMLEntity.parse(&scanner)
        if let encoded = UTF8.encode(character) { text?.append(contentsOf: encoded) }
      case UInt8(ascii: "<"):
        if scanner.take("![CDATA[") {
          let start = scanner.offset
          try skip(past: "]]>")
          text?.append(contentsOf: scanner.text[start..<scanner.offset - 3])
        } else if scanner.take("/"), try tag().name == name {
          return text
        } else {
          throw MalformedPropertyList()
        }
      default: text?.append(byte)
      }
    }
    throw MalformedPropertyList()
  }
}

/// The predefined entities of XML, and character references.
enum XMLEntity {
  /// Parses what follows `&`.
  static func parse(_ scanner: inout ByteScanner) throws(MalformedPropertyList) -> Unicode.Scalar {
    if scanner.take("lt;") { return "<" }
    if scanner.take("gt;") { return ">" }
    if scanner.take("amp;") { return "&" }
    if scanner.take("quot;") { return "\"" }
    if scanner.take("apos;") { return "'" }
    guard scanner.take("#") else { throw MalformedPropertyList() }
    let radix: UInt32 = scanner.take("x") ? 16 : 10
    var value: UInt32 = 0
    while let byte = scanner.pop() {
      if byte == UInt8(ascii: ";"), let character = Unicode.Scalar(value) { return character }
      guard let digit = OpenStepEscape.hexDigit(byte), digit < radix else { break }
      value = value * radix + digit
      if value > 0x10FFFF { break }
    }
    throw MalformedPropertyList()
  }
}
