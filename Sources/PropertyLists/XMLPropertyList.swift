/// An XML property list. Attributes and the document type are skipped.
struct XMLPropertyList {
  private var scanner: ByteScanner
  private var builder = PropertyListBuilder()
  private var isInPlist = false
  /// Where the markup begins that is parsed.
  private var markupStart = 0

  init(_ scanner: ByteScanner) { self.scanner = scanner }

  /// - Returns: what was built and, if the text is malformed, why and where.
  mutating func parse() -> (PropertyListBuilder, (String, Int)?) {
    do throws(MalformedPropertyList) {
      while !builder.isComplete || isInPlist { try parseMarkup() }
      return (builder, nil)
    } catch {
      return (builder, (error.reason, markupStart))
    }
  }

  /// Parses what begins with `<`; text is only inside the elements of scalars.
  private mutating func parseMarkup() throws(MalformedPropertyList) {
    scanner.skipWhitespace()
    markupStart = scanner.offset
    guard scanner.take("<") else {
      throw MalformedPropertyList(scanner.next == nil ? "the text ends too early" : "text outside of a value")
    }
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
    guard scanner.skip(past: word) else { throw MalformedPropertyList("\(word) is missing") }
  }

  /// Skips to the end of a document type declaration, which may have an internal subset in brackets.
  private mutating func skipDocumentType() throws(MalformedPropertyList) {
    guard !builder.hasRoot, !isInPlist else {
      throw MalformedPropertyList("a document type inside of the list")
    }
    while let byte = scanner.pop() {
      switch byte {
      case UInt8(ascii: ">"): return
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        guard scanner.skip(past: byte) != nil else { throw MalformedPropertyList("a quote is missing") }
      case UInt8(ascii: "["): try skipInternalSubset()
      default: break
      }
    }
    throw MalformedPropertyList("the document type is not closed")
  }

  private mutating func skipInternalSubset() throws(MalformedPropertyList) {
    while !scanner.take("]") {
      if scanner.take("<!--") {
        try skip(past: "-->")
      } else if scanner.take("<?") {
        try skip(past: "?>")
      } else {
        guard let byte = scanner.pop() else { throw MalformedPropertyList("the document type is not closed") }
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'"), scanner.skip(past: byte) == nil {
          throw MalformedPropertyList("the document type is not closed")
        }
      }
    }
  }

  // MARK: - Elements

  /// Parses a tag's name, after `<`, and skips its attributes. As in Foundation, the first `>` ends the tag.
  private mutating func tag() throws(MalformedPropertyList) -> (name: ArraySlice<UInt8>, isEmpty: Bool) {
    let start = scanner.offset
    guard let end = scanner.skip(past: UInt8(ascii: ">")) else { throw MalformedPropertyList("> is missing") }
    let isEmpty = end > start && scanner.text[end - 1] == UInt8(ascii: "/")
    let content = scanner.text[start..<(isEmpty ? end - 1 : end)]
    return (content.prefix { $0 > 0x20 }, isEmpty)
  }

  private mutating func beginElement() throws(MalformedPropertyList) {
    let (name, isEmpty) = try tag()
    switch Element(name) {
    case .plist:
      guard !isInPlist, !isEmpty, !builder.hasRoot else {
        throw MalformedPropertyList("an empty or second plist")
      }
      isInPlist = true
    case .array:
      try builder.beginArray()
      if isEmpty { try builder.end(array: true) }
    case .dictionary:
      try builder.beginDictionary()
      if isEmpty { try builder.end(array: false) }
    case .key where builder.expectsKey: try builder.add(key: isEmpty ? [] : content(endingWith: name))
    // Foundation takes a key in place of a value for a string.
    case .string, .key:
      let text = isEmpty ? [] : try content(endingWith: name)
      try builder.add(.string(String(decoding: text, as: UTF8.self)))
    case .scalar(let kind):
      let text = isEmpty ? [] : try content(endingWith: name)
      try builder.add(kind.value(of: text))
    case nil: throw MalformedPropertyList("an unknown element")
    }
  }

  private mutating func endElement() throws(MalformedPropertyList) {
    switch Element(try tag().name) {
    case .array: try builder.end(array: true)
    case .dictionary: try builder.end(array: false)
    case .plist:
      guard isInPlist, builder.isComplete else { throw MalformedPropertyList("the list ends too early") }
      isInPlist = false
    default: throw MalformedPropertyList("the end of an element that is not open")
    }
  }

  private enum Element {
    case plist, array, dictionary, key, string
    case scalar(XMLScalar)

    init?(_ name: ArraySlice<UInt8>) {
      // Longer than any; decoding a name takes time in proportion to its length.
      if name.count > 8 { return nil }
      switch String(decoding: name, as: UTF8.self) {
      case "plist": self = .plist
      case "array": self = .array
      case "dict": self = .dictionary
      case "key": self = .key
      case "string": self = .string
      case let other:
        guard let kind = XMLScalar(rawValue: other) else { return nil }
        self = .scalar(kind)
      }
    }
  }

  // MARK: - Text

  /// Parses the text up to the end tag, with entities and CDATA sections.
  private mutating func content(
    endingWith name: ArraySlice<UInt8>
  ) throws(MalformedPropertyList) -> [UInt8] {
    var text: [UInt8] = []
    while let byte = scanner.pop() {
      switch byte {
      case UInt8(ascii: "&"):
        let character = try XMLEntity.parse(&scanner)
        if let encoded = UTF8.encode(character) { text.append(contentsOf: encoded) }
      case UInt8(ascii: "<"):
        if scanner.take("![CDATA[") {
          let start = scanner.offset
          try skip(past: "]]>")
          text.append(contentsOf: scanner.text[start..<scanner.offset - 3])
        } else if scanner.take("/"), try tag().name == name {
          return text
        } else {
          throw MalformedPropertyList("an element inside of a text")
        }
      default: text.append(byte)
      }
    }
    throw MalformedPropertyList("the end tag of a text is missing")
  }
}
