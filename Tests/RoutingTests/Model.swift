import TestSupport

@testable import Routing

/// A model of `ValueType`, based on tables.
enum ModelType: Hashable {
  case text, integer, number
  case literal(String)

  /// The alphabet of components. It distinguishes every pair of types.
  static let texts: [(text: String, isInteger: Bool, isNumber: Bool)] = [
    ("a", false, false), ("b", false, false), ("1", true, true), ("-2", true, true), ("1.5", false, true),
    ("2.5", false, true),
  ]
  /// Excludes one text of each kind.
  static let literals = ["a", "1", "1.5"]

  func matches(_ text: String) -> Bool {
    switch self {
    case .text: true
    case .integer: Self.texts.contains { $0.text == text && $0.isInteger }
    case .number: Self.texts.contains { $0.text == text && $0.isNumber }
    case .literal(let literal): literal == text
    }
  }

  var text: String {
    switch self {
    case .text: "s"
    case .integer: "i"
    case .number: "f"
    case .literal: "l"
    }
  }

  var literalPart: String {
    if case .literal(let text) = self { "(\(text))" } else { "" }
  }

  static func random(_ random: inout SplitMix64, literals: [String] = literals) -> ModelType {
    switch random.number(0...5) {
    case 0: .text
    case 1: .integer
    case 2: .number
    default: .literal(random.pick(literals))
    }
  }
}

/// A model of a URL.
struct ModelURL {
  var scheme: String
  var segments: [String]
  /// The values of the parameters by name.
  var query: [String: [String]]

  var text: String {
    let parameters = query.sorted { $0.key < $1.key }.flatMap { name, values in values.map { "\(name)=\($0)" }
    }
    return "\(scheme):" + segments.joined(separator: "/")
      + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
  }

  /// Every URL with up to three segments, three schemes, and the parameters p and q.
  static func all() -> [ModelURL] {
    var paths: [[String]] = [[]]
    for length in 1...3 {
      paths += paths.filter { $0.count == length - 1 }.flatMap { path in
        ModelType.texts.map { path + [$0.text] }
      }
    }
    var queries: [[String: [String]]] = []
    let values = ["", "a", "b", "1", "-2", "1.5", "2.5"].map { [$0] }
    for p in [nil] + values + [["a", "1"], ["1", "a"], ["1", "-2"], ["1.5", "2.5"]] {
      for q in [nil, "a", "b"] {
        var query: [String: [String]] = [:]
        query["p"] = p
        query["q"] = q.map { [$0] }
        queries.append(query)
      }
    }
    return paths.flatMap { path in
      ["x", "y", "z"].flatMap { scheme in
        queries.map { ModelURL(scheme: scheme, segments: path, query: $0) }
      }
    }
  }
}

/// A model of a pattern.
struct ModelPattern {
  struct Parameter {
    let name: String
    let type: ModelType
    let isOptional: Bool
    var isArray = false
  }

  var scheme: String?
  var types: [ModelType]
  var hasTail: Bool
  /// Whether the tail may be empty or, without one, the last component absent.
  var isEndOptional = false
  var parameters: [Parameter]

  /// Whether the URL matches by the definition of patterns.
  func matches(_ url: ModelURL) -> Bool {
    if let scheme, scheme != url.scheme { return false }
    let (count, excess) = (types.count, url.segments.count - types.count)
    let fits =
      hasTail ? excess > 0 || isEndOptional && excess == 0 : excess == 0 || isEndOptional && excess == -1
    guard fits, count >= 0 else { return false }
    for (type, segment) in zip(types, url.segments) where !type.matches(segment) { return false }
    return parameters.allSatisfy { parameter in
      guard let values = url.query[parameter.name] else { return parameter.isOptional }
      return (parameter.isArray ? values[...] : values.prefix(1)).allSatisfy { parameter.type.matches($0) }
    }
  }

  var text: String {
    var parts = types.enumerated().map { index, type in
      let mark = isEndOptional && !hasTail && index == types.count - 1 ? "?" : ""
      return "\(type.text)\(mark):\(type.literalPart)K\(index)"
    }
    if hasTail { parts.append(isEndOptional ? "**:Rest" : "*:Rest") }
    let query = parameters.map {
      "\($0.name)=\($0.type.text)\($0.isOptional ? "?" : "")\($0.isArray ? "[]" : ""):\($0.type.literalPart)P\($0.name)"
    }
    return (scheme.map { "\($0)://" } ?? "") + parts.joined(separator: "/")
      + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
  }

  /// A random pattern whose relations ``ModelURL/all()`` determines: without a tail, it is shorter than the longest
  /// URLs.
  static func random(_ random: inout SplitMix64) -> ModelPattern {
    var parameters: [Parameter] = []
    if random.percent(40) {
      parameters.append(
        Parameter(
          name: "p", type: .random(&random), isOptional: random.percent(50), isArray: random.percent(30)))
    }
    if random.percent(20) {
      let type = random.percent(50) ? ModelType.text : .literal("a")
      parameters.append(Parameter(name: "q", type: type, isOptional: random.percent(50)))
    }
    let hasTail = random.percent(30)
    let scheme = random.percent(40) ? random.pick(["x", "y"]) : nil
    // A scheme may stand alone.
    let fewest = hasTail || scheme != nil ? 0 : 1
    let types = (0..<random.number(fewest...2)).map { _ in ModelType.random(&random) }
    let isEndOptional = random.percent(30) && (hasTail || !types.isEmpty)
    return ModelPattern(
      scheme: scheme, types: types, hasTail: hasTail, isEndOptional: isEndOptional, parameters: parameters)
  }
}
