import Containers

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
  public init(_ line: some Collection<UInt8>) throws(RoutingError) { try self.init(Array(line).span) }

  /// Parses the bytes of a line, as of any collection.
  public init(_ line: Span<UInt8>) throws(RoutingError) {
    var words = Words(line)
    guard !words.rest.isEmpty, line[words.rest.lowerBound] != UInt8(ascii: "#"),
      line[words.rest.lowerBound] != UInt8(ascii: "{")
    else {
      self = .ignored
      return
    }
    guard Words.endWithoutNewline(line) <= RouteURL.maxLength else {
      throw RoutingError(.tooLong, "a line is at most \(RouteURL.maxLength) bytes long")
    }
    let text = line.extracting(words.rest)
    let scheme = Scheme.end(in: text)
    if scheme > 0, scheme < text.count, text[scheme] == UInt8(ascii: ":") {
      self = .post(try Self.url(words.rest, line))
      return
    }
    let word = words.next(line)
    switch String(line.extracting(word)) {
    case "match":
      if words.rest.isEmpty { throw .malformed("match is followed by a URL", at: words.rest.lowerBound) }
      self = .match(try Self.url(words.rest, line))
    case "route": self = try Self.route(&words, line)
    case "unroute":
      let name = try Self.name(words.next(line), line)
      try Self.requireEnd(of: words)
      self = .unroute(name)
    case "reset":
      try Self.requireEnd(of: words)
      self = .reset
    default: throw .malformed("a URL, match, route, unroute or reset is expected", at: word.lowerBound)
    }
  }

  private static func url(_ range: Range<Int>, _ line: Span<UInt8>) throws(RoutingError) -> RouteURL {
    do { return try RouteURL(Array(line.extracting(range))) } catch {
      throw error.shifted(by: range.lowerBound)
    }
  }

  private static func route(
    _ words: inout Words, _ line: Span<UInt8>
  ) throws(RoutingError) -> ControlCommand {
    let name = try name(words.next(line), line)
    let rest = words.rest
    if rest.isEmpty { throw .malformed("a pattern is missing", at: rest.lowerBound) }
    // A literal may contain " before ", so the whole is tried first.
    var (pattern, other): (Range<Int>, String?) = (rest, nil)
    if let split = splitBefore(rest, line), (try? RoutePattern(line.extracting(rest))) == nil {
      pattern = split.pattern
      other = try Self.name(split.other, line)
    }
    let parsed: RoutePattern
    do { parsed = try RoutePattern(line.extracting(pattern)) } catch {
      throw error.shifted(by: pattern.lowerBound)
    }
    return .route(try Route(validName: name, parsed), before: other)
  }

  /// Splits `PATTERN before OTHER`; nil if the text is not of this form.
  private static func splitBefore(
    _ range: Range<Int>, _ line: Span<UInt8>
  ) -> (pattern: Range<Int>, other: Range<Int>)? {
    guard let space = range.last(where: { Words.isWhitespace(line[$0]) }) else { return nil }
    let head = Words.trimmed(range.lowerBound..<space, line)
    let start = head.upperBound - 6
    guard start > head.lowerBound, String(line.extracting(start..<head.upperBound)) == "before",
      Words.isWhitespace(line[start - 1])
    else { return nil }
    return (Words.trimmed(head.lowerBound..<start, line), space + 1..<range.upperBound)
  }

  private static func name(_ range: Range<Int>, _ line: Span<UInt8>) throws(RoutingError) -> String {
    let bytes = line.extracting(range)
    if let bad = firstInvalidUTF8(in: bytes) {
      throw .malformed("this is not UTF-8", at: range.lowerBound + bad.lowerBound)
    }
    let name = String(bytes)
    do { try Route.validate(name: name) } catch { throw error.shifted(by: range.lowerBound) }
    return name
  }

  private static func requireEnd(of words: Words) throws(RoutingError) {
    if !words.rest.isEmpty { throw .malformed("nothing may follow here", at: words.rest.lowerBound) }
  }
}

extension String {
  /// Decodes UTF-8; what is invalid becomes U+FFFD.
  init(_ bytes: Span<UInt8>) { self = bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } }
}
