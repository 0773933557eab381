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
  /// The parameters by name.
  var query: [String: String]

  var text: String {
    "\(scheme):" + segments.joined(separator: "/")
      + (query.isEmpty
        ? "" : "?" + query.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: "&"))
  }

  /// Every URL with up to three segments, three schemes, and the parameters p and q.
  static func all() -> [ModelURL] {
    var paths: [[String]] = [[]]
    for length in 1...3 {
      paths += paths.filter { $0.count == length - 1 }.flatMap { path in
        ModelType.texts.map { path + [$0.text] }
      }
    }
    var queries: [[String: String]] = []
    for p in [nil, "", "a", "b", "1", "-2", "1.5", "2.5"] {
      for q in [nil, "a", "b"] {
        var query: [String: String] = [:]
        query["p"] = p
        query["q"] = q
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
  }

  var scheme: String?
  var types: [ModelType]
  var hasTail: Bool
  var parameters: [Parameter]

  /// Whether the URL matches by the definition of patterns.
  func matches(_ url: ModelURL) -> Bool {
    if let scheme, scheme != url.scheme { return false }
    guard hasTail ? url.segments.count > types.count : url.segments.count == types.count else { return false }
    for (type, segment) in zip(types, url.segments) where !type.matches(segment) { return false }
    return parameters.allSatisfy { parameter in
      url.query[parameter.name].map { parameter.type.matches($0) } ?? parameter.isOptional
    }
  }

  var text: String {
    var parts = types.enumerated().map { "\($1.text):\($1.literalPart)K\($0)" }
    if hasTail { parts.append("*:Rest") }
    let query = parameters.map {
      "\($0.name)=\($0.type.text)\($0.isOptional ? "?" : ""):\($0.type.literalPart)P\($0.name)"
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
        Parameter(name: "p", type: .random(&random), isOptional: random.percent(50)))
    }
    if random.percent(20) {
      let type = random.percent(50) ? ModelType.text : .literal("a")
      parameters.append(Parameter(name: "q", type: type, isOptional: random.percent(50)))
    }
    let hasTail = random.percent(30)
    let types = (0..<random.number(hasTail ? 0...2 : 1...2)).map { _ in ModelType.random(&random) }
    return ModelPattern(
      scheme: random.percent(40) ? random.pick(["x", "y"]) : nil, types: types, hasTail: hasTail,
      parameters: parameters)
  }
}
