struct PatternParser {
  private let text: [UInt8]
  /// The keys so far, once they are many.
  private var keys: Set<String> = []
  private var names: Set<[UInt8]> = []
  private var components: [RoutePattern.Component] = []
  private var tail: String?
  private var isTailOptional = false
  private var parameters: [RoutePattern.Parameter] = []

  init(_ text: [UInt8]) { self.text = text }

  mutating func parse() throws(RoutingError) -> RoutePattern {
    guard text.count <= RouteURL.maxLength else {
      throw RoutingError(.tooLong, "a pattern is at most \(RouteURL.maxLength) bytes long")
    }
    try validateBytes()
    let scheme = try parseScheme(before: text.firstIndex(of: UInt8(ascii: "?")) ?? text.count)
    let query = queryStart(from: scheme.end)
    let path = scheme.end..<(query ?? text.count)
    // A scheme alone is for URLs without components.
    if scheme.name == nil || !path.isEmpty { try parseComponents(path) }
    if let query { try parseParameters(query + 1..<text.count) }
    return RoutePattern(
      scheme: scheme.name, components: components, tail: tail, parameters: parameters,
      isTailOptional: isTailOptional)
  }

  /// The first `?` that is not the mark of an optional component, as in `s?:Key`.
  private func queryStart(from start: Int) -> Int? {
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

  private func validateBytes() throws(RoutingError) {
    if let bad = firstInvalidUTF8(in: text.span) {
      throw .malformed("this is not UTF-8", at: bad.lowerBound)
    }
    if let offset = text.firstIndex(where: { $0 < 0x20 || $0 == 0x7F }) {
      throw .malformed("a control character in a pattern is percent-encoded", at: offset)
    }
  }

  private func parseScheme(before pathEnd: Int) throws(RoutingError) -> (name: String?, end: Int) {
    // A literal may contain "://".
    let head = text[..<pathEnd].prefix { $0 != UInt8(ascii: "(") }
    let separator = Array("://".utf8)
    guard let colon = head.indices.first(where: { head[$0...].starts(with: separator) }) else {
      return (nil, 0)
    }
    let end = Scheme.end(in: text.span)
    guard end == colon, colon > 0 else {
      throw .malformed("a scheme is a letter, then letters, digits, +, - and .", at: min(end, colon))
    }
    return (String(decoding: text[..<colon], as: UTF8.self).lowercased(), colon + separator.count)
  }

  private mutating func parseComponents(_ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    if start < range.upperBound, text[start] == UInt8(ascii: "/") { start += 1 }
    guard start < range.upperBound else { throw .malformed("a component is missing", at: start) }
    let slashes = text[start..<range.upperBound].count { $0 == UInt8(ascii: "/") }
    components.reserveCapacity(min(slashes + 1, RouteURL.maxComponents))
    while true {
      let end = text[start..<range.upperBound].firstIndex(of: UInt8(ascii: "/")) ?? range.upperBound
      guard components.count < RouteURL.maxComponents else {
        throw .malformed("a pattern has at most \(RouteURL.maxComponents) components", at: start)
      }
      try parseComponent(start..<end, isLast: end == range.upperBound)
      if end == range.upperBound { return }
      start = end + 1
    }
  }

  private mutating func parseComponent(_ range: Range<Int>, isLast: Bool) throws(RoutingError) {
    if range.isEmpty { throw .malformed("a component is empty", at: range.lowerBound) }
    let (letter, mark, end) = try parseLetter(range)
    let value = end..<range.upperBound
    if letter == UInt8(ascii: "*") {
      if !isLast { throw .malformed("*: must be last", at: range.lowerBound) }
      tail = try parseKey(value)
      isTailOptional = mark != nil
    } else {
      if mark != nil, !isLast {
        throw .malformed("only the last component may be optional", at: range.lowerBound)
      }
      let (type, key) = try parseType(letter, at: range.lowerBound, value, allowed: Self.componentTypes)
      components.append(
        RoutePattern.Component(type: type, key: try parseKey(key), isOptional: mark != nil))
    }
  }

  private static let componentTypes = "s, i, f, l or *"

  /// A component's type letter, its mark (`?` after a letter, `*` after `*`), and the offset after the colon.
  private func parseLetter(_ range: Range<Int>) throws(RoutingError) -> (UInt8, mark: UInt8?, end: Int) {
    guard let colon = text[range].firstIndex(of: UInt8(ascii: ":")) else {
      throw .malformed(
        "a type (\(Self.componentTypes)), a colon and a key are expected", at: range.lowerBound)
    }
    let letter = text[range.lowerBound]
    if colon == range.lowerBound + 1 { return (letter, nil, colon + 1) }
    let mark = letter == UInt8(ascii: "*") ? letter : UInt8(ascii: "?")
    guard colon == range.lowerBound + 2, text[range.lowerBound + 1] == mark else {
      throw .malformed("unknown type: expected \(Self.componentTypes)", at: range.lowerBound)
    }
    return (letter, mark, colon + 1)
  }

  private func parseType(
    _ letter: UInt8, at offset: Int, _ value: Range<Int>, allowed: String
  ) throws(RoutingError) -> (ValueType, key: Range<Int>) {
    switch letter {
    case UInt8(ascii: "s"): return (.text, value)
    case UInt8(ascii: "i"): return (.integer, value)
    case UInt8(ascii: "f"): return (.number, value)
    case UInt8(ascii: "l"): return try parseLiteral(value)
    default: throw .malformed("unknown type: expected \(allowed)", at: offset)
    }
  }

  private func parseLiteral(_ value: Range<Int>) throws(RoutingError) -> (ValueType, key: Range<Int>) {
    guard let open = value.first, text[open] == UInt8(ascii: "(") else {
      throw .malformed("a literal's text must be in parentheses", at: value.lowerBound)
    }
    guard let close = text[value].lastIndex(of: UInt8(ascii: ")")) else {
      throw .malformed("the parenthesis is not closed; / ? & in a literal are written %2F %3F %26", at: open)
    }
    if close == open + 1 { throw .malformed("a literal is empty", at: open) }
    return (.literal(try decode(open + 1..<close)), close + 1..<value.upperBound)
  }

  private func decode(_ range: Range<Int>) throws(RoutingError) -> [UInt8] {
    // The whole is UTF-8.
    if !text[range].contains(UInt8(ascii: "%")) { return Array(text[range]) }
    var decoded: [UInt8] = []
    var offset = range.lowerBound
    while offset < range.upperBound {
      guard text[offset] == UInt8(ascii: "%") else {
        decoded.append(text[offset])
        offset += 1
        continue
      }
      guard let byte = PercentCoding.byte(at: offset, in: text.span.extracting(..<range.upperBound)) else {
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

  private mutating func parseKey(_ range: Range<Int>) throws(RoutingError) -> String {
    if range.isEmpty { throw .malformed("a key is missing", at: range.lowerBound) }
    for offset in range
    where !text[offset].isLetter && !text[offset].isDigit && text[offset] != UInt8(ascii: "_") {
      throw .malformed("a key is made of letters, digits and _", at: offset)
    }
    let key = String(decoding: text[range], as: UTF8.self)
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

  private mutating func parseParameters(_ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    while true {
      let end = text[start..<range.upperBound].firstIndex(of: UInt8(ascii: "&")) ?? range.upperBound
      guard parameters.count < RouteURL.maxParameters else {
        throw .malformed("a pattern has at most \(RouteURL.maxParameters) parameters", at: start)
      }
      parameters.append(try parseParameter(start..<end))
      if end == range.upperBound { return }
      start = end + 1
    }
  }

  private mutating func parseParameter(_ range: Range<Int>) throws(RoutingError) -> RoutePattern.Parameter {
    guard let equals = text[range].firstIndex(of: UInt8(ascii: "=")) else {
      throw .malformed("a parameter's name and = are expected", at: range.lowerBound)
    }
    if equals == range.lowerBound { throw .malformed("a parameter's name is missing", at: equals) }
    let name = try parseName(range.lowerBound..<equals)
    var offset = equals + 1
    guard offset + 1 < range.upperBound else {
      throw .malformed("a type (s, i, f or l), a colon and a key are expected", at: offset)
    }
    let letterOffset = offset
    offset += 1
    let isOptional = text[offset] == UInt8(ascii: "?")
    if isOptional { offset += 1 }
    let isArray = text[offset..<range.upperBound].starts(with: "[]".utf8)
    if isArray { offset += 2 }
    guard offset < range.upperBound, text[offset] == UInt8(ascii: ":") else {
      throw .malformed(
        "unknown type: expected s, i, f or l, ? if it is optional, [] for an array",
        at: letterOffset)
    }
    let (type, key) = try parseType(
      text[letterOffset], at: letterOffset, offset + 1..<range.upperBound, allowed: "s, i, f or l")
    return RoutePattern.Parameter(
      name: name, type: type, isOptional: isOptional, key: try parseKey(key), isArray: isArray)
  }

  private mutating func parseName(_ range: Range<Int>) throws(RoutingError) -> [UInt8] {
    for offset in range where text[offset] == UInt8(ascii: " ") || text[offset] == UInt8(ascii: "#") {
      throw .malformed("a space or # in a parameter's name is percent-encoded", at: offset)
    }
    let name = try decode(range)
    guard names.insert(name).inserted else {
      throw .malformed("the parameter appears twice", at: range.lowerBound)
    }
    return name
  }
}
