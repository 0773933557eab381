import TestSupport
import Testing

@testable import Routing

@Suite struct TableTests {
  private static let words = (0..<300).map { "w\($0)" } + ["1", "1.5", "a"]

  /// A pattern of two literals and up to two other components. Such patterns share prefixes and often overlap, but
  /// few shadow others.
  private func model(_ random: inout SplitMix64) -> ModelPattern {
    var types = (0..<2).map { _ in ModelType.literal(random.pick(Self.words)) }
    for _ in 0..<random.number(0...2) {
      types.insert(.random(&random, literals: Self.words), at: random.number(0...types.count))
    }
    let parameters =
      random.percent(30)
      ? [ModelPattern.Parameter(name: "p", type: .random(&random), isOptional: random.percent(30))] : []
    return ModelPattern(
      scheme: random.percent(30) ? random.pick(["x", "y"]) : nil, types: types, hasTail: random.percent(10),
      parameters: parameters)
  }

  private func url(_ random: inout SplitMix64) -> ModelURL {
    let segments = (0..<random.number(1...5)).map { _ in
      random.percent(80) ? random.pick(Self.words) : random.pick(ModelType.texts).text
    }
    let query = random.percent(50) ? ["p": [random.pick(ModelType.texts).text]] : [:]
    return ModelURL(scheme: random.pick(["x", "y", "z"]), segments: segments, query: query)
  }

  @Test("the first match wins, like in a linear search", arguments: [1, 10, 100, 1000, 10_000])
  func firstWins(size: Int) throws {
    var random = SplitMix64(seed: UInt64(size))
    var table = RouteTable()
    var registered: [(name: String, model: ModelPattern)] = []
    for _ in 0..<2 * size + 10 where registered.count < size {
      let model = model(&random)
      let name = "N\(registered.count)"
      do { try table.append(Route(name: name, pattern: RoutePattern(model.text))) } catch { continue }
      registered.append((name, model))
    }
    #expect(table.count == size)
    var matched = 0
    for round in 0..<400 {
      // Half of the URLs match by construction.
      var url = url(&random)
      if round.isMultiple(of: 2) { url = matching(random.pick(registered).model, &random) }
      let expected = registered.first { $0.model.matches(url) }?.name
      #expect(try table.match(RouteURL(bytes(url.text)))?.name == expected, "\(url.text)")
      if expected != nil { matched += 1 }
    }
    #expect(matched >= 200)
  }

  /// A URL that matches the pattern.
  private func matching(_ model: ModelPattern, _ random: inout SplitMix64) -> ModelURL {
    func text(_ type: ModelType) -> String {
      if case .literal(let literal) = type { return literal }
      return random.pick(ModelType.texts.map(\.text).filter { type.matches($0) })
    }
    var url = ModelURL(scheme: model.scheme ?? "z", segments: model.types.map { text($0) }, query: [:])
    if model.hasTail { url.segments += Array(repeating: "more", count: random.number(1...2)) }
    for parameter in model.parameters { url.query[parameter.name] = [text(parameter.type)] }
    return url
  }

  @Test("remove deletes all routes with a name and keeps the order of the others")
  func removal() throws {
    var random = SplitMix64(seed: 9)
    var table = RouteTable()
    var expected: [Route] = []
    for step in 0..<3000 {
      if random.percent(35) {
        let name = "N\(random.number(0...40))"
        #expect(table.remove(name: name) == expected.count { $0.name == name })
        expected.removeAll { $0.name == name }
      } else {
        let route = try Route(
          name: "N\(random.number(0...40))", pattern: RoutePattern("l:(a\(step))A/s:B?v=l:(\(step % 7))C"))
        try table.append(route)
        expected.append(route)
      }
      #expect(table.count == expected.count)
      if let route = expected.randomElement(using: &random),
        case .literal(let text) = route.pattern.components[0].type,
        case .literal(let value) = route.pattern.parameters[0].type
      {
        let url = "x://\(String(decoding: text, as: UTF8.self))/b?v=\(String(decoding: value, as: UTF8.self))"
        #expect(try table.match(RouteURL(bytes(url)))?.name == route.name)
      }
    }
    #expect(table.routes == expected)
    for step in 0..<3000
    where !expected.contains(where: { $0.pattern.description.hasPrefix("l:(a\(step))A") }) {
      #expect(try table.match(RouteURL(bytes("x://a\(step)/b?v=\(step % 7)"))) == nil)
    }
  }

  @Test("a shadowed pattern can be registered after the other is removed")
  func unshadowed() throws {
    var table = try table([("All", "s:A"), ("Other", "s:A/s:B")])
    let one = try Route(name: "One", pattern: RoutePattern("i:A"))
    #expect(throws: RoutingError.self) { try table.append(one) }
    #expect(table.remove(name: "All") == 1)
    #expect(table.overlaps(of: one.pattern) == .none)
    try table.append(one)
    #expect(try table.match(RouteURL(bytes("x:1")))?.name == "One")
    #expect(try table.match(RouteURL(bytes("x:a"))) == nil)
    #expect(table.text == "route Other s:A/s:B\nroute One i:A\n")
  }

  @Test("the text of a table recreates it")
  func text() throws {
    var random = SplitMix64(seed: 5)
    var table = RouteTable()
    for number in 0..<300 {
      let route = try Route(name: "Nämé\(number)", pattern: RoutePattern(model(&random).text))
      do { try table.append(route) } catch { continue }
    }
    var copy = RouteTable()
    for line in table.text.split(separator: "\n") {
      guard case .route(let route, nil) = try ControlCommand(line.utf8) else {
        Issue.record("no route: \(line)")
        return
      }
      try copy.append(route)
    }
    #expect(copy.routes == table.routes && copy.count > 100)
  }

  @Test("canonically equivalent names are distinct")
  func spelling() throws {
    var table = try table([("\u{E9}", "l:(a)A"), ("e\u{301}", "l:(b)A")])
    #expect(table.remove(name: "\u{E9}") == 1)
    #expect(table.text == "route e\u{301} l:(b)A\n")
  }

  @Test(
    "optional ends, rests that may be empty, and arrays bind what is there",
    arguments: [
      ("app://", "app://", "{}"), ("app://", "app:", "{}"), ("app://", "app:a", ""), ("app://", "x://", ""),
      ("app://?q=s:Q", "app://?q=1", #"{"Q":"1"}"#),
      ("l:(a)A/i?:B", "x://a/1", #"{"A":"a","B":1}"#), ("l:(a)A/i?:B", "x://a", #"{"A":"a"}"#),
      ("l:(a)A/i?:B", "x://a/b", ""), ("l:(a)A/i?:B", "x://a/1/2", ""), ("i?:B", "x://", "{}"),
      ("s:A/l?:(b)B", "x:a", #"{"A":"a"}"#), ("s:A/l?:(b)B", "x:a/b", #"{"A":"a","B":"b"}"#),
      ("s:A/**:B", "x:a", #"{"A":"a","B":""}"#), ("s:A/**:B", "x:a/b/c", #"{"A":"a","B":"b/c"}"#),
      ("**:B", "x:", #"{"B":""}"#), ("s:A/*:B", "x:a", ""),
      ("s:A?s=i[]:S", "x:a?s=1&t=2&s=3", #"{"A":"a","S":[1,3]} query=t=2"#),
      ("s:A?s=i[]:S", "x:a?s=1&s=b", ""),
      ("s:A?s=i[]:S", "x:a", ""), ("s:A?s=s?[]:S", "x:a", #"{"A":"a"}"#),
      ("s:A?s=s?[]:S", "x:a?s", #"{"A":"a","S":[""]}"#),
    ])
  func newParts(pattern: String, url: String, expected: String) throws {
    let table = try table([("N", pattern)])
    #expect(try table.match(RouteURL(bytes(url)))?.shown ?? "" == expected)
  }

  @Test("a route with two ends is removed from both")
  func removalOfTwoEnds() throws {
    var table = try table([("A", "l:(a)A/i?:B"), ("B", "l:(b)A/**:B"), ("C", "*:C")])
    #expect(try table.match(RouteURL(bytes("x:a")))?.name == "A")
    #expect(table.remove(name: "A") == 1 && table.remove(name: "B") == 1)
    for url in ["x:a", "x:a/1", "x:b", "x:b/1"] {
      #expect(try table.match(RouteURL(bytes(url)))?.name == "C")
    }
  }

  @Test(
    "a name is a word", arguments: ["", "a b", "a\tb", "a\u{A0}b", "\u{2028}", "a\u{7F}", "a\u{85}", "\0"])
  func names(name: String) throws {
    let pattern = try RoutePattern("s:A")
    #expect(throws: RoutingError.self) { try Route(name: name, pattern: pattern) }
  }

  @Test("a route that exceeds the line length is rejected")
  func longRoute() throws {
    // The description encodes each space as three characters.
    let pattern = try RoutePattern("l:(\(String(repeating: " ", count: 30_000)))A")
    let error = #expect(throws: RoutingError.self) { try Route(name: "N", pattern: pattern) }
    #expect(error?.code == .tooLong)
  }
}
