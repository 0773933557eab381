/// Splits a URL into ranges and validates it. Decoding comes afterwards.
struct URLParser {
  private(set) var scheme = ByteRange(0..<0)
  private(set) var schemeHasCapitals = false
  private(set) var hasHost = false
  private(set) var port: ByteRange?
  var components: [ByteRange] = []
  var parameters: [RouteURL.Parameter] = []
  private(set) var fragment: ByteRange?
  private(set) var hasPercentSequences = false
  /// Whether every byte is ASCII after decoding.
  private(set) var isASCII = true

  mutating func parse(_ text: Span<UInt8>) throws(RoutingError) {
    var offset = try parseScheme(text)
    try validateBytes(text, from: offset)
    // Few URLs have more; growing the array costs more than the rest of parsing.
    components.reserveCapacity(8)
    if offset + 1 < text.count, text[offset] == Self.slash, text[offset + 1] == Self.slash {
      let end = Self.end(of: text, from: offset + 2) { $0 == Self.slash || Self.endsPath($0) }
      try parseAuthority(text, offset + 2..<end)
      offset = end
    }
    let pathEnd = Self.end(of: text, from: offset, where: Self.endsPath)
    try parsePath(text, offset..<pathEnd)
    offset = pathEnd
    if offset < text.count, text[offset] == UInt8(ascii: "?") {
      let end = Self.end(of: text, from: offset) { $0 == UInt8(ascii: "#") }
      try parseQuery(text, offset + 1..<end)
      offset = end
    }
    // The rest begins with `#`.
    if offset + 1 < text.count { fragment = ByteRange(offset + 1..<text.count) }
  }

  private static let slash = UInt8(ascii: "/")

  @inline(__always)
  private static func endsPath(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }

  @inline(__always)
  private static func end(of text: Span<UInt8>, from start: Int, where isEnd: (UInt8) -> Bool) -> Int {
    var offset = start
    while offset < text.count, !isEnd(text[offset]) { offset += 1 }
    return offset
  }

  /// - Returns: The offset after the colon.
  private mutating func parseScheme(_ text: Span<UInt8>) throws(RoutingError) -> Int {
    let end = Scheme.end(in: text)
    guard end > 0, end < text.count, text[end] == UInt8(ascii: ":") else {
      throw .malformed("a URL begins with its scheme and a colon", at: min(end, text.count))
    }
    scheme = ByteRange(0..<end)
    for offset in 0..<end where text[offset] <= UInt8(ascii: "Z") && text[offset] >= UInt8(ascii: "A") {
      schemeHasCapitals = true
    }
    return end + 1
  }

  private mutating func validateBytes(_ text: Span<UInt8>, from start: Int) throws(RoutingError) {
    var offset = start
    while offset < text.count {
      let byte = text[offset]
      if byte == UInt8(ascii: "%") {
        guard let value = PercentCoding.byte(at: offset, in: text) else {
          throw .malformed("a % is followed by two hexadecimal digits; alone it is written %25", at: offset)
        }
        hasPercentSequences = true
        isASCII = isASCII && value < 0x80
        offset += 3
        continue
      }
      guard byte > 0x20, byte != 0x7F else {
        throw .malformed(
          byte == 0x20
            ? "a space in a URL is written %20" : "a control character in a URL is percent-encoded",
          at: offset)
      }
      isASCII = isASCII && byte < 0x80
      offset += 1
    }
  }

  private mutating func parseAuthority(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    let at = Self.end(of: text.extracting(..<range.upperBound), from: start) { $0 == UInt8(ascii: "@") }
    if at < range.upperBound { start = at + 1 }
    let end = try Host.end(in: text, start..<range.upperBound)
    if end < range.upperBound {
      for offset in end + 1..<range.upperBound where !text[offset].isDigit {
        throw .malformed("a port is a number", at: offset)
      }
      if end + 1 < range.upperBound { port = ByteRange(end + 1..<range.upperBound) }
    }
    hasHost = start < end
    if hasHost { components.append(ByteRange(start..<end)) }
  }

  private mutating func parsePath(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    while start < range.upperBound {
      var end = start
      while end < range.upperBound, text[end] != Self.slash { end += 1 }
      if start < end {
        guard components.count < RouteURL.maxComponents else {
          throw .malformed("a URL has at most \(RouteURL.maxComponents) components", at: start)
        }
        components.append(ByteRange(start..<end))
      }
      start = end + 1
    }
  }

  private mutating func parseQuery(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    while start < range.upperBound {
      var (end, nameEnd) = (start, -1)
      while end < range.upperBound, text[end] != UInt8(ascii: "&") {
        if text[end] == UInt8(ascii: "="), nameEnd < 0 { nameEnd = end }
        end += 1
      }
      if start < end {
        guard parameters.count < RouteURL.maxParameters else {
          throw .malformed("a query has at most \(RouteURL.maxParameters) parameters", at: start)
        }
        let name = nameEnd < 0 ? start..<end : start..<nameEnd
        let value = nameEnd < 0 ? end..<end : nameEnd + 1..<end
        parameters.append(
          RouteURL.Parameter(name: ByteRange(name), value: ByteRange(value), written: ByteRange(start..<end)))
      }
      start = end + 1
    }
  }
}

/// Schemes (RFC 3986, section 3.1).
public enum Scheme {
  /// Whether a text is a scheme's name.
  public static func isName(_ text: [UInt8]) -> Bool { !text.isEmpty && end(in: text.span) == text.count }

  /// The length of the scheme at the start of a text; 0 if there is none.
  static func end(in text: Span<UInt8>) -> Int {
    var offset = 0
    while offset < text.count, text[offset].isLetter || (offset > 0 && isDigitOrMark(text[offset])) {
      offset += 1
    }
    return offset
  }

  @inline(__always)
  private static func isDigitOrMark(_ byte: UInt8) -> Bool {
    byte.isDigit || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
  }
}
