/// A line of the control file or of a routes file.
public enum ControlCommand: Hashable, Sendable {
  /// A blank line, a `#` comment, or a result (which begins with `{`) that is fed back.
  case ignored
  /// `SCHEME:…`: match the URL and post the notification.
  case post(RouteURL)
  /// `match URL`: match the URL without posting.
  case match(RouteURL)
  /// `route NAME PATTERN`: register a route; `route NAME PATTERN before OTHER`: before another.
  case route(Route, before: String? = nil)
  /// `unroute NAME`: remove the routes with a name.
  case unroute(String)
  /// `reset`: remove all routes.
  case reset

  /// Parses a line, which may end with LF or CR LF. Whitespace around the line and between words is ignored.
  /// - Throws: EINVAL or E2BIG, with offsets in the line.
  public init(_ line: some Collection<UInt8>) throws(RoutingError) {
    let line = Array(line)
    var words = Words(line)
    guard let first = words.rest.first, first != UInt8(ascii: "#"), first != UInt8(ascii: "{") else {
      self = .ignored
      return
    }
    guard Words.withoutNewline(line).count <= RouteURL.maxLength else {
      throw RoutingError(.tooLong, "a line is at most \(RouteURL.maxLength) bytes long")
    }
    let scheme = Scheme.end(in: words.rest.span)
    if scheme > 0, scheme < words.rest.count, words.rest[words.rest.startIndex + scheme] == UInt8(ascii: ":")
    {
      self = .post(try Self.url(words.rest))
      return
    }
    self = try Self.command(&words)
  }

  private static func command(_ words: inout Words) throws(RoutingError) -> ControlCommand {
    let start = words.rest.startIndex
    let word = words.next()
    switch String(decoding: word, as: UTF8.self) {
    case "match":
      if words.rest.isEmpty { throw .malformed("match is followed by a URL", at: words.rest.startIndex) }
      return .match(try url(words.rest))
    case "route":
      let nameStart = words.rest.startIndex
      return try route(words.next(), at: nameStart, words.rest)
    case "unroute":
      let name = try Self.name(words.next())
      try requireEnd(of: words)
      return .unroute(name)
    case "reset":
      try requireEnd(of: words)
      return .reset
    default: throw .malformed("a URL, match, route, unroute or reset is expected", at: start)
    }
  }

  private static func url(_ text: ArraySlice<UInt8>) throws(RoutingError) -> RouteURL {
    do { return try RouteURL(Array(text)) } catch { throw error.shifted(by: text.startIndex) }
  }

  private static func route(
    _ name: ArraySlice<UInt8>, at start: Int, _ rest: ArraySlice<UInt8>
  ) throws(RoutingError) -> ControlCommand {
    let name = try Self.name(name)
    if rest.isEmpty { throw .malformed("a pattern is missing", at: rest.startIndex) }
    // A literal may contain " before ", so the whole is tried first.
    var (pattern, other): (ArraySlice<UInt8>, String?) = (rest, nil)
    if let split = splitBefore(rest), (try? RoutePattern(Array(rest))) == nil {
      pattern = split.pattern
      other = try Self.name(split.other)
    }
    let parsed: RoutePattern
    do { parsed = try RoutePattern(Array(pattern)) } catch { throw error.shifted(by: pattern.startIndex) }
    do { return .route(try Route(name: name, pattern: parsed), before: other) } catch {
      throw error.shifted(by: start)
    }
  }

  /// Splits `PATTERN before OTHER`; nil if the text is not of this form.
  private static func splitBefore(
    _ text: ArraySlice<UInt8>
  ) -> (pattern: ArraySlice<UInt8>, other: ArraySlice<UInt8>)? {
    guard let space = text.lastIndex(where: { Words.isWhitespace($0) }) else { return nil }
    let head = Words.withoutWhitespaceAtEnd(text[..<space])
    let word = Array("before".utf8)
    guard head.suffix(word.count).elementsEqual(word), let last = head.dropLast(word.count).last,
      Words.isWhitespace(last)
    else { return nil }
    return (Words.withoutWhitespaceAtEnd(head.dropLast(word.count)), text[(space + 1)...])
  }

  private static func name(_ bytes: ArraySlice<UInt8>) throws(RoutingError) -> String {
    if let bad = firstInvalidUTF8(in: bytes.span) {
      throw .malformed("this is not UTF-8", at: bytes.startIndex + bad.lowerBound)
    }
    let name = String(decoding: bytes, as: UTF8.self)
    do { try Route.validate(name: name) } catch { throw error.shifted(by: bytes.startIndex) }
    return name
  }

  private static func requireEnd(of words: Words) throws(RoutingError) {
    if !words.rest.isEmpty { throw .malformed("nothing may follow here", at: words.rest.startIndex) }
  }
}

/// The words of a line. Slices keep the line's indexes.
private struct Words {
  /// The unread rest, without surrounding whitespace.
  private(set) var rest: ArraySlice<UInt8>

  init(_ line: [UInt8]) {
    rest = Self.withoutWhitespaceAtEnd(Self.withoutNewline(line))
    skipWhitespace()
  }

  /// The line without a final LF or CR LF.
  static func withoutNewline(_ line: [UInt8]) -> ArraySlice<UInt8> {
    var rest = line[...]
    // `removeLast` would copy the line, which another slice shares.
    if rest.last == UInt8(ascii: "\n") { rest = rest.dropLast() }
    if rest.last == UInt8(ascii: "\r") { rest = rest.dropLast() }
    return rest
  }

  /// Consumes a word; empty at the end of the line.
  mutating func next() -> ArraySlice<UInt8> {
    let word = rest.prefix { !Self.isWhitespace($0) }
    rest = rest[word.endIndex...]
    skipWhitespace()
    return word
  }

  private mutating func skipWhitespace() { rest = rest.drop { Self.isWhitespace($0) } }

  static func withoutWhitespaceAtEnd(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    text.prefix((text.lastIndex { !isWhitespace($0) } ?? text.startIndex - 1) + 1 - text.startIndex)
  }

  static func isWhitespace(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }
}
