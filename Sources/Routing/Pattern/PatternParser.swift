/// Reads the text of a pattern.
struct PatternParser {
  private let text: [UInt8]
  private var keys: Set<String> = []
  private var names: Set<[UInt8]> = []
  private var components: [RoutePattern.Component] = []
  private var tail: String?
  private var parameters: [RoutePattern.Parameter] = []

  init(_ text: [UInt8]) { self.text = text }

  mutating func read() throws(RoutingError) -> RoutePattern {
    guard text.count <= RouteURL.maxLength else {
      throw RoutingError(.tooLong, "a pattern is at most \(RouteURL.maxLength) bytes long")
    }
    try checkBytes()
    let query = text.firstIndex(of: UInt8(ascii: "?"))
    let pathEnd = query ?? text.count
    let scheme = try readScheme(before: pathEnd)
    try readComponents(scheme.end..<pathEnd)
    if let query { try readParameters(query + 1..<text.count) }
    return RoutePattern(
      scheme: scheme.name, components: components, tail: tail, parameters: parameters)
  }

  /// What holds of every byte, whatever its part.
  private func checkBytes() throws(RoutingError) {
    if let bad = firstInvalid(in: text.span) {
      throw .malformed("what begins here is not UTF-8", at: bad.lowerBound)
    }
    if let place = text.firstIndex(where: { $0 < 0x20 || $0 == 0x7F }) {
      throw .malformed("a control character in a pattern is percent-encoded", at: place)
    }
  }

  // MARK: Scheme

  /// The scheme, if there is one, and where the components begin.
  private func readScheme(before pathEnd: Int) throws(RoutingError) -> (name: String?, end: Int) {
    // A literal may hold the marks of a scheme.
    let head = text[..<pathEnd].prefix { $0 != UInt8(ascii: "(") }
    let mark = Array("://".utf8)
    guard let colon = head.indices.first(where: { head[$0...].starts(with: mark) }) else { return (nil, 0) }
    let end = Scheme.end(in: text.span)
    guard end == colon, colon > 0 else {
      throw .malformed(
        "a scheme is a letter, then letters, digits, +, - and .", at: min(end, colon))
    }
    return (String(decoding: text[..<colon], as: UTF8.self).lowercased(), colon + mark.count)
  }

  // MARK: Components

  private mutating func readComponents(_ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    if start < range.upperBound, text[start] == UInt8(ascii: "/") { start += 1 }
    guard start < range.upperBound else { throw .malformed("a pattern has a component", at: start) }
    while true {
      let end = text[start..<range.upperBound].firstIndex(of: UInt8(ascii: "/")) ?? range.upperBound
      guard components.count < RouteURL.maxComponents else {
        throw .malformed("a pattern has at most \(RouteURL.maxComponents) components", at: start)
      }
      try readComponent(start..<end, isLast: end == range.upperBound)
      if end == range.upperBound { return }
      start = end + 1
    }
  }

  private mutating func readComponent(_ range: Range<Int>, isLast: Bool) throws(RoutingError) {
    if range.isEmpty { throw .malformed("a component is empty", at: range.lowerBound) }
    let letter = try readLetter(range, allowed: "s, i, f, l or *")
    let value = range.lowerBound + 2..<range.upperBound
    if letter == UInt8(ascii: "*") {
      guard isLast else {
        throw .malformed("*: takes all that follows, and must be last", at: range.lowerBound)
      }
      tail = try readKey(value)
    } else {
      let (type, keyRange) = try readType(letter, at: range.lowerBound, value, allowed: "s, i, f, l or *")
      components.append(RoutePattern.Component(type: type, key: try readKey(keyRange)))
    }
  }

  /// The letter before the colon with which a component begins.
  private func readLetter(_ range: Range<Int>, allowed: String) throws(RoutingError) -> UInt8 {
    guard let colon = text[range].firstIndex(of: UInt8(ascii: ":")) else {
      throw .malformed("a type (\(allowed)), a colon and a key are wanted here", at: range.lowerBound)
    }
    guard colon == range.lowerBound + 1 else {
      throw .malformed("an unknown type: it is \(allowed)", at: range.lowerBound)
    }
    return text[range.lowerBound]
  }

  /// The type of a letter, and where its key is.
  private func readType(
    _ letter: UInt8, at place: Int, _ value: Range<Int>, allowed: String
  ) throws(RoutingError) -> (ValueType, key: Range<Int>) {
    switch letter {
    case UInt8(ascii: "s"): return (.text, value)
    case UInt8(ascii: "i"): return (.integer, value)
    case UInt8(ascii: "f"): return (.number, value)
    case UInt8(ascii: "l"): return try readLiteral(value)
    default: throw .malformed("an unknown type: it is \(allowed)", at: place)
    }
  }

  private func readLiteral(_ value: Range<Int>) throws(RoutingError) -> (ValueType, key: Range<Int>) {
    guard let open = value.first, text[open] == UInt8(ascii: "(") else {
      throw .malformed("a literal's text stands in parentheses", at: value.lowerBound)
    }
    guard let close = text[value].lastIndex(of: UInt8(ascii: ")")) else {
      throw .malformed("the parenthesis is not closed; / ? & in a literal are written %2F %3F %26", at: open)
    }
    if close == open + 1 { throw .malformed("a literal is empty", at: open) }
    return (.literal(try decode(open + 1..<close)), close + 1..<value.upperBound)
  }

  /// Text that is percent-encoded.
  private func decode(_ range: Range<Int>) throws(RoutingError) -> [UInt8] {
    var decoded: [UInt8] = []
    var place = range.lowerBound
    while place < range.upperBound {
      guard text[place] == UInt8(ascii: "%") else {
        decoded.append(text[place])
        place += 1
        continue
      }
      guard let byte = PercentCoding.byte(at: place, in: text.span.extracting(..<range.upperBound)) else {
        throw .malformed("a % is followed by two hexadecimal digits; alone it is written %25", at: place)
      }
      decoded.append(byte)
      place += 3
    }
    if firstInvalid(in: decoded.span) != nil {
      throw .malformed("what begins here is not UTF-8", at: range.lowerBound)
    }
    return decoded
  }

  // MARK: Keys

  private mutating func readKey(_ range: Range<Int>) throws(RoutingError) -> String {
    if range.isEmpty { throw .malformed("a key is missing", at: range.lowerBound) }
    for place in range where !Self.isAllowedInKeys(text[place]) {
      throw .malformed("a key is made of letters, digits and _", at: place)
    }
    let key = String(decoding: text[range], as: UTF8.self)
    guard keys.insert(key).inserted else {
      throw .malformed("the key \(key) is there twice", at: range.lowerBound)
    }
    return key
  }

  private static func isAllowedInKeys(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  // MARK: Parameters

  private mutating func readParameters(_ range: Range<Int>) throws(RoutingError) {
    var start = range.lowerBound
    while true {
      let end = text[start..<range.upperBound].firstIndex(of: UInt8(ascii: "&")) ?? range.upperBound
      guard parameters.count < RouteURL.maxParameters else {
        throw .malformed("a pattern has at most \(RouteURL.maxParameters) parameters", at: start)
      }
      parameters.append(try readParameter(start..<end))
      if end == range.upperBound { return }
      start = end + 1
    }
  }

  private mutating func readParameter(_ range: Range<Int>) throws(RoutingError) -> RoutePattern.Parameter {
    guard let equals = text[range].firstIndex(of: UInt8(ascii: "=")) else {
      throw .malformed("a parameter's name and = are wanted here", at: range.lowerBound)
    }
    if equals == range.lowerBound { throw .malformed("a parameter's name is missing", at: equals) }
    let name = try readName(range.lowerBound..<equals)
    var place = equals + 1
    guard place + 1 < range.upperBound else {
      throw .malformed("a type (s, i, f or l), a colon and a key are wanted here", at: place)
    }
    let letterPlace = place
    place += 1
    let isOptional = text[place] == UInt8(ascii: "?")
    if isOptional { place += 1 }
    guard place < range.upperBound, text[place] == UInt8(ascii: ":") else {
      throw .malformed("an unknown type: it is s, i, f or l, and ? if it is optional", at: letterPlace)
    }
    let (type, key) = try readType(
      text[letterPlace], at: letterPlace, place + 1..<range.upperBound, allowed: "s, i, f or l")
    return RoutePattern.Parameter(name: name, type: type, isOptional: isOptional, key: try readKey(key))
  }

  private mutating func readName(_ range: Range<Int>) throws(RoutingError) -> [UInt8] {
    for place in range where text[place] == UInt8(ascii: " ") || text[place] == UInt8(ascii: "#") {
      throw .malformed("a space or # in a parameter's name is percent-encoded", at: place)
    }
    let name = try decode(range)
    guard names.insert(name).inserted else {
      throw .malformed("the parameter is there twice", at: range.lowerBound)
    }
    return name
  }
}
