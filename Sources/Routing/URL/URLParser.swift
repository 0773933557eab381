/// Finds the parts of a URL, and refuses what is none. Nothing is decoded here.
struct URLParser {
  private(set) var scheme = Piece(0..<0)
  private(set) var schemeHasCapitals = false
  private(set) var hasHost = false
  var components: [Piece] = []
  var parameters: [RouteURL.Parameter] = []
  private(set) var fragment: Piece?
  /// Whether there are percent sequences.
  private(set) var hasEscapes = false
  /// Whether every byte is ASCII, encoded ones too.
  private(set) var isASCII = true

  /// Reads all of the URL.
  mutating func read(_ text: Span<UInt8>) throws(RoutingError) {
    var place = try readScheme(text)
    try check(text, from: place)
    // Few URLs have more, and growing an array costs more than all else here.
    components.reserveCapacity(8)
    if place + 1 < text.count, text[place] == Self.slash, text[place + 1] == Self.slash {
      let end = Self.end(of: text, from: place + 2) { $0 == Self.slash || Self.endsPath($0) }
      try readAuthority(text, place + 2..<end)
      place = end
    }
    let pathEnd = Self.end(of: text, from: place, where: Self.endsPath)
    try readPath(text, place..<pathEnd)
    place = pathEnd
    if place < text.count, text[place] == UInt8(ascii: "?") {
      let end = Self.end(of: text, from: place) { $0 == UInt8(ascii: "#") }
      try readQuery(text, place + 1..<end)
      place = end
    }
    // What is left begins with the number sign.
    if place + 1 < text.count { fragment = Piece(place + 1..<text.count) }
  }

  private static let slash = UInt8(ascii: "/")

  @inline(__always)
  private static func endsPath(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }

  @inline(__always)
  private static func end(of text: Span<UInt8>, from start: Int, where isEnd: (UInt8) -> Bool) -> Int {
    var place = start
    while place < text.count, !isEnd(text[place]) { place += 1 }
    return place
  }

  /// - Returns: the place after the colon.
  private mutating func readScheme(_ text: Span<UInt8>) throws(RoutingError) -> Int {
    let end = Scheme.end(in: text)
    guard end > 0, end < text.count, text[end] == UInt8(ascii: ":") else {
      throw .malformed("a URL begins with its scheme and a colon", at: min(end, text.count))
    }
    scheme = Piece(0..<end)
    for place in 0..<end where text[place] <= UInt8(ascii: "Z") && text[place] >= UInt8(ascii: "A") {
      schemeHasCapitals = true
    }
    return end + 1
  }

  /// What holds of every byte of a URL, whatever its part.
  private mutating func check(_ text: Span<UInt8>, from start: Int) throws(RoutingError) {
    var place = start
    while place < text.count {
      let byte = text[place]
      if byte == UInt8(ascii: "%") {
        guard let value = PercentCoding.byte(at: place, in: text) else {
          throw .malformed("a % is followed by two hexadecimal digits; alone it is written %25", at: place)
        }
        hasEscapes = true
        isASCII = isASCII && value < 0x80
        place += 3
        continue
      }
      guard byte > 0x20, byte != 0x7F else {
        throw .malformed(
          byte == 0x20
            ? "a space in a URL is written %20" : "a control character in a URL is percent-encoded",
          at: place)
      }
      isASCII = isASCII && byte < 0x80
      place += 1
    }
  }

  private mutating func readAuthority(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    let at = Self.end(of: text.extracting(..<range.upperBound), from: start) { $0 == UInt8(ascii: "@") }
    if at < range.upperBound { start = at + 1 }
    let end = try Host.end(in: text, start..<range.upperBound)
    if end < range.upperBound {
      for place in end + 1..<range.upperBound
      where text[place] < UInt8(ascii: "0") || text[place] > UInt8(ascii: "9") {
        throw .malformed("a port is a number", at: place)
      }
    }
    hasHost = start < end
    if hasHost { components.append(Piece(start..<end)) }
  }

  private mutating func readPath(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    while start < range.upperBound {
      var end = start
      while end < range.upperBound, text[end] != Self.slash { end += 1 }
      if start < end {
        guard components.count < RouteURL.maxComponents else {
          throw .malformed("a URL has at most \(RouteURL.maxComponents) components", at: start)
        }
        components.append(Piece(start..<end))
      }
      start = end + 1
    }
  }

  private mutating func readQuery(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) {
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
          RouteURL.Parameter(name: Piece(name), value: Piece(value), written: Piece(start..<end)))
      }
      start = end + 1
    }
  }
}

/// Schemes (RFC 3986, section 3.1).
public enum Scheme {
  /// Whether a text is the name of one.
  public static func isName(_ text: [UInt8]) -> Bool { !text.isEmpty && end(in: text.span) == text.count }

  /// Where the scheme ends with which the text begins; 0 if it begins with none.
  static func end(in text: Span<UInt8>) -> Int {
    var place = 0
    while place < text.count, isAllowed(text[place], first: place == 0) { place += 1 }
    return place
  }

  @inline(__always)
  private static func isAllowed(_ byte: UInt8, first: Bool) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
      !first
    default: false
    }
  }
}
