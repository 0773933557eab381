import Containers

/// Splits a pattern and validates it.
struct PatternParser {
  /// The keys so far, once they are many.
  private var keys: Set<String> = []
  private var names: Set<[UInt8]> = []
  private var components: [RoutePattern.Component] = []
  private var tail: String?
  private var isTailOptional = false
  private var parameters: [RoutePattern.Parameter] = []

  mutating func parse(_ text: Span<UInt8>) throws(RoutingError) -> RoutePattern {
    guard text.count <= RouteURL.maxLength else {
      throw RoutingError(.tooLong, "a pattern is at most \(RouteURL.maxLength) bytes long")
    }
    try Self.validateBytes(text)
    let mark = text.firstIndex(of: UInt8(ascii: "?"), in: 0..<text.count)
    let scheme = try Self.parseScheme(text, before: mark ?? text.count)
    let query = mark == nil ? nil : Self.queryStart(text, from: scheme.end)
    let path = scheme.end..<(query ?? text.count)
    // A scheme alone is for URLs without components.
    if scheme.name == nil || !path.isEmpty { try parseComponents(text, path) }
    if let query { try parseParameters(text, query + 1..<text.count) }
    return RoutePattern(
      scheme: scheme.name, components: components, tail: tail, parameters: parameters,
      isTailOptional: isTailOptional)
  }

  /// The first `?` that is not the mark of an optional component, as in `s?:Key`.
  private static func queryStart(_ text: Span<UInt8>, from start: Int) -> Int? {
    var component = start
    for offset in start..<text.count {
      if text[offset] == UInt8(ascii: "/") { component = offset + 1 }
      guard text[offset] == UInt8(ascii: "?") else { continue }
      let isMark =
        offset == component + 1 && offset + 1 < text.count && text[offset + 1] == UInt8(ascii: ":")
      if !isMark { return offset }
    }
    return nil
  }

  private static func validateBytes(_ text: Span<UInt8>) throws(RoutingError) {
    var isASCII = true
    var control: Int?
    for offset in text.indices {
      let byte = text[offset]
      if byte >= 0x80 { isASCII = false }
      if byte < 0x20 || byte == 0x7F, control == nil { control = offset }
    }
    if !isASCII, let bad = firstInvalidUTF8(in: text) {
      throw .malformed("this is not UTF-8", at: bad.lowerBound)
    }
    if let control { throw .malformed("a control character in a pattern is percent-encoded", at: control) }
  }

  private static func parseScheme(
    _ text: Span<UInt8>, before pathEnd: Int
  ) throws(RoutingError) -> (name: String?, end: Int) {
    guard let colon = schemeColon(text, before: pathEnd) else { return (nil, 0) }
    let end = Scheme.end(in: text)
    guard end == colon, colon > 0 else {
      throw .malformed("a scheme is a letter, then letters, digits, +, - and .", at: min(end, colon))
    }
    return (String(text.extracting(..<colon)).lowercased(), colon + 3)
  }

  /// The offset of the first `://` that is not in a literal.
  private static func schemeColon(_ text: Span<UInt8>, before pathEnd: Int) -> Int? {
    for offset in 0..<pathEnd {
      if text[offset] == UInt8(ascii: "(") { return nil }
      let isColon = text[offset] == UInt8(ascii: ":") && offset + 2 < pathEnd
      if isColon, text[offset + 1] == UInt8(ascii: "/"), text[offset + 2] == UInt8(ascii: "/") {
        return offset
      }
    }
    return nil
  }

  private mutating func parseComponents(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    if start < range.upperBound, text[start] == UInt8(ascii: "/") { start += 1 }
    guard start < range.upperBound else { throw .malformed("a component is missing", at: start) }
    let slashes = (start..<range.upperBound).count { text[$0] == UInt8(ascii: "/") }
    components.reserveCapacity(min(slashes + 1, RouteURL.maxComponents))
    while true {
      let end = text.firstIndex(of: UInt8(ascii: "/"), in: start..<range.upperBound) ?? range.upperBound
      guard components.count < RouteURL.maxComponents else {
        throw .malformed("a pattern has at most \(RouteURL.maxComponents) components", at: start)
      }
      try parseComponent(text, start..<end, isLast: end == range.upperBound)
      if end == range.upperBound { return }
      start = end + 1
    }
  }

  private mutating func parseComponent(
    _ text: Span<UInt8>, _ range: Range<Int>, isLast: Bool
  ) throws(RoutingError) {
    if range.isEmpty { throw .malformed("a component is empty", at: range.lowerBound) }
    let (letter, mark, end) = try Self.parseLetter(text, range)
    let value = end..<range.upperBound
    if letter == UInt8(ascii: "*") {
      if !isLast { throw .malformed("*: must be last", at: range.lowerBound) }
      tail = try parseKey(text, value)
      isTailOptional = mark != nil
    } else {
      if mark != nil, !isLast {
        throw .malformed("only the last component may be optional", at: range.lowerBound)
      }
      let (type, key) = try Self.parseType(
        text, letter, at: range.lowerBound, value, allowed: Self.componentTypes)
      components.append(
        RoutePattern.Component(type: type, key: try parseKey(text, key), isOptional: mark != nil))
    }
  }

  private static let componentTypes = "s, i, f, l or *"

  /// A component's type letter, its mark (`?` after a letter, `*` after `*`), and the offset after the colon.
  private static func parseLetter(
    _ text: Span<UInt8>, _ range: Range<Int>
  ) throws(RoutingError) -> (UInt8, mark: UInt8?, end: Int) {
    guard let colon = text.firstIndex(of: UInt8(ascii: ":"), in: range) else {
      throw .malformed(
        "a type (\(componentTypes)), a colon and a key are expected", at: range.lowerBound)
    }
    let letter = text[range.lowerBound]
    if colon == range.lowerBound + 1 { return (letter, nil, colon + 1) }
    let mark = letter == UInt8(ascii: "*") ? letter : UInt8(ascii: "?")
    guard colon == range.lowerBound + 2, text[range.lowerBound + 1] == mark else {
      throw .malformed("unknown type: expected \(componentTypes)", at: range.lowerBound)
    }
    return (letter, mark, colon + 1)
  }

  private static func parseType(
    _ text: Span<UInt8>, _ letter: UInt8, at offset: Int, _ value: Range<Int>, allowed: String
  ) throws(RoutingError) -> (ValueType, key: Range<Int>) {
    switch letter {
    case UInt8(ascii: "s"): return (.text, value)
    case UInt8(ascii: "i"): return (.integer, value)
    case UInt8(ascii: "f"): return (.number, value)
    case UInt8(ascii: "l"): return try parseLiteral(text, value)
    default: throw .malformed("unknown type: expected \(allowed)", at: offset)
    }
  }

  private static func parseLiteral(
    _ text: Span<UInt8>, _ value: Range<Int>
  ) throws(RoutingError) -> (ValueType, key: Range<Int>) {
    guard let open = value.first, text[open] == UInt8(ascii: "(") else {
      throw .malformed("a literal's text must be in parentheses", at: value.lowerBound)
    }
    guard let close = value.last(where: { text[$0] == UInt8(ascii: ")") }) else {
      throw .malformed("the parenthesis is not closed; / ? & in a literal are written %2F %3F %26", at: open)
    }
    if close == open + 1 { throw .malformed("a literal is empty", at: open) }
    return (.literal(try decode(text, open + 1..<close)), close + 1..<value.upperBound)
  }

  private static func decode(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) -> [UInt8] {
    // The whole is UTF-8.
    if text.firstIndex(of: UInt8(ascii: "%"), in: range) == nil { return Array(text.extracting(range)) }
    var decoded: [UInt8] = []
    var offset = range.lowerBound
    while offset < range.upperBound {
      guard text[offset] == UInt8(ascii: "%") else {
        decoded.append(text[offset])
        offset += 1
        continue
      }
      guard let byte = PercentCoding.byte(at: offset, in: text.extracting(..<range.upperBound)) else {
        throw .malformed("a % is followed by two hexadecimal digits; alone it is written %25", at: offset)
      }
      decoded.append(byte)
      offset += 3
    }
    if firstInvalidUTF8(in: decoded.span) != nil {
      throw .malformed("this is not UTF-8", at: range.lowerBound)
    }
    return decoded
  }

  private mutating func parseKey(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) -> String {
    if range.isEmpty { throw .malformed("a key is missing", at: range.lowerBound) }
    for offset in range
    where !text[offset].isLetter && !text[offset].isDigit && text[offset] != UInt8(ascii: "_") {
      throw .malformed("a key is made of letters, digits and _", at: offset)
    }
    let key = String(text.extracting(range))
    guard isNew(key) else { throw .malformed("the key \(key) appears twice", at: range.lowerBound) }
    return key
  }

  /// Whether a key has not appeared before. A few are compared one by one, which is faster than hashing them.
  private mutating func isNew(_ key: String) -> Bool {
    if components.count + parameters.count < 8 {
      return tail != key && !components.contains { $0.key == key } && !parameters.contains { $0.key == key }
    }
    if keys.isEmpty {
      keys = Set(components.map(\.key) + parameters.map(\.key))
      if let tail { keys.insert(tail) }
    }
    return keys.insert(key).inserted
  }

  private mutating func parseParameters(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    while true {
      let end = text.firstIndex(of: UInt8(ascii: "&"), in: start..<range.upperBound) ?? range.upperBound
      guard parameters.count < RouteURL.maxParameters else {
        throw .malformed("a pattern has at most \(RouteURL.maxParameters) parameters", at: start)
      }
      parameters.append(try parseParameter(text, start..<end))
      if end == range.upperBound { return }
      start = end + 1
    }
  }

  private mutating func parseParameter(
    _ text: Span<UInt8>, _ range: Range<Int>
  ) throws(RoutingError) -> RoutePattern.Parameter {
    guard let equals = text.firstIndex(of: UInt8(ascii: "="), in: range) else {
      throw .malformed("a parameter's name and = are expected", at: range.lowerBound)
    }
    if equals == range.lowerBound { throw .malformed("a parameter's name is missing", at: equals) }
    let name = try parseName(text, range.lowerBound..<equals)
    var offset = equals + 1
    guard offset + 1 < range.upperBound else {
      throw .malformed("a type (s, i, f or l), a colon and a key are expected", at: offset)
    }
    let letterOffset = offset
    offset += 1
    let isOptional = text[offset] == UInt8(ascii: "?")
    if isOptional { offset += 1 }
    let isArray =
      offset + 1 < range.upperBound && text[offset] == UInt8(ascii: "[")
      && text[offset + 1] == UInt8(ascii: "]")
    if isArray { offset += 2 }
    guard offset < range.upperBound, text[offset] == UInt8(ascii: ":") else {
      throw .malformed(
        "unknown type: expected s, i, f or l, ? if it is optional, [] for an array",
        at: letterOffset)
    }
    let (type, key) = try Self.parseType(
      text, text[letterOffset], at: letterOffset, offset + 1..<range.upperBound, allowed: "s, i, f or l")
    return RoutePattern.Parameter(
      name: name, type: type, isOptional: isOptional, key: try parseKey(text, key), isArray: isArray)
  }

  private mutating func parseName(_ text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) -> [UInt8] {
    for offset in range where text[offset] == UInt8(ascii: " ") || text[offset] == UInt8(ascii: "#") {
      throw .malformed("a space or # in a parameter's name is percent-encoded", at: offset)
    }
    let name = try Self.decode(text, range)
    guard names.insert(name).inserted else {
      throw .malformed("the parameter appears twice", at: range.lowerBound)
    }
    return name
  }
}

extension Span<UInt8> {
  /// The offset of the first occurrence of a byte in a range.
  fileprivate func firstIndex(of byte: UInt8, in range: Range<Int>) -> Int? {
    for offset in range where self[offset] == byte { return offset }
    return nil
  }
}
