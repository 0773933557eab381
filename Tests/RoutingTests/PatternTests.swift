import TestSupport
import Testing

@testable import Routing

@Suite struct PatternTests {
  /// Malformed patterns with the column and a part of the message.
  private static let refused: [(pattern: String, column: Int, words: String)] = [
    ("", 1, "component is missing"),
    ("/", 2, "component is missing"),
    ("?", 1, "component is missing"),
    ("x:///", 6, "component is missing"),
    ("?a=s:A", 1, "component is missing"),
    ("//s:A", 2, "is empty"),
    ("s:A//s:B", 5, "is empty"),
    ("s:A/", 5, "is empty"),
    ("s:A/?b=s:B", 5, "is empty"),
    ("x:////s:A", 6, "is empty"),
    ("s:", 3, "key is missing"),
    ("i:A/s:/f:B", 7, "key is missing"),
    ("l:(a)", 6, "key is missing"),
    ("l:(abc)/l:(d)K", 8, "key is missing"),
    ("*:", 3, "key is missing"),
    ("s:A?b=i:", 9, "key is missing"),
    ("s", 1, "a colon and a key"),
    ("s:A/animal", 5, "a colon and a key"),
    ("s?:A/s:B", 1, "only the last component"),
    ("s:A/s?:B/*:C", 5, "only the last component"),
    ("s:A/s??:B", 5, "a colon and a key"),
    ("***:A", 1, "unknown type"),
    ("s*:A", 1, "unknown type"),
    ("s[]:A", 1, "unknown type"),
    ("**:A/s:B", 1, "must be last"),
    ("s:A?b=s[:B", 7, "unknown type"),
    ("s:A?b=s[]?:B", 7, "unknown type"),
    ("s:A?b=s[]", 7, "unknown type"),
    ("*", 1, "a colon and a key"),
    ("d:A", 1, "unknown type"),
    ("S:A", 1, "unknown type"),
    ("s:A/x:B", 5, "unknown type"),
    (":A", 1, "unknown type"),
    ("ss:A", 1, "unknown type"),
    ("é:A", 1, "unknown type"),
    ("s:A?b=x:B", 7, "unknown type"),
    ("s:A?b=*:B", 7, "unknown type"),
    ("s:A?b=s??:B", 7, "unknown type"),
    ("s:A?b=ss:B", 7, "unknown type"),
    ("l:abcA", 3, "in parentheses"),
    ("l:", 3, "in parentheses"),
    ("l:(abcA", 3, "not closed"),
    ("l:(a/b)A", 3, "not closed"),
    ("l:(://)A", 3, "not closed"),
    ("l:(a?)A", 3, "not closed"),
    ("s:A?b=l:(x&y)B", 9, "not closed"),
    ("l:()A", 3, "literal is empty"),
    ("s:A?b=l:()B", 9, "literal is empty"),
    ("l:(%)A", 4, "hexadecimal"),
    ("l:(a%4)A", 5, "hexadecimal"),
    ("l:(%FF)A", 4, "not UTF-8"),
    ("s:A-B", 4, "letters, digits and _"),
    ("s:A B", 4, "letters, digits and _"),
    ("s:A:B", 4, "letters, digits and _"),
    ("s:é", 3, "letters, digits and _"),
    ("l:(a)b)c)-", 10, "letters, digits and _"),
    ("s:A?b=s:B#c", 10, "letters, digits and _"),
    ("s:A?b=s:B?", 10, "letters, digits and _"),
    ("s:A/i:B/f:A", 11, "A appears twice"),
    ("s:A/*:A", 7, "A appears twice"),
    ("s:A?b=s:A", 9, "A appears twice"),
    ("*:A/s:B", 1, "must be last"),
    ("s:A/*:B/*:C", 5, "must be last"),
    ("s:A?", 5, "name and ="),
    ("s:A?b", 5, "name and ="),
    ("s:A?b=s:B&", 11, "name and ="),
    ("s:A?b=s:B&&c=s:C", 11, "name and ="),
    ("s:A?=s:B", 5, "name is missing"),
    ("s:A?b=s:B&b=i:C", 11, "parameter appears twice"),
    ("s:A?b=s:B&%62=i:C", 11, "parameter appears twice"),
    ("s:A?b=", 7, "a colon and a key"),
    ("s:A?b=s", 7, "a colon and a key"),
    ("s:A?b c=s:B", 6, "percent-encoded"),
    ("s:A?b#=s:B", 6, "percent-encoded"),
    ("s:A?b%=s:B", 6, "hexadecimal"),
    ("s:A?%FF=s:B", 5, "not UTF-8"),
    ("1x://s:A", 1, "scheme"),
    ("://s:A", 1, "scheme"),
    ("x_y://s:A", 2, "scheme"),
    ("x y://s:A", 2, "scheme"),
    ("é://s:A", 1, "scheme"),
    ("/x://s:A", 1, "scheme"),
    ("s:A\t", 4, "control character"),
    (#"s:A\x00"#, 4, "control character"),
    (#"l:(\x7F)A"#, 4, "control character"),
    (#"l:(a\xFF)A"#, 5, "not UTF-8"),
  ]

  @Test("malformed patterns fail with column and reason", arguments: refused)
  func errors(pattern: String, column: Int, words: String) throws {
    let error = try #require(throws: RoutingError.self) { try RoutePattern(bytes(pattern)) }
    #expect(error.code == .malformed)
    #expect(error.column == column)
    #expect(error.message.contains(words), "\(error.message)")
    #expect("\(error)" == "column \(column): \(error.message)")
  }

  @Test(
    "the description is canonical",
    arguments: [
      ("s:A", "s:A"), ("/s:A/i:B/f:C", "s:A/i:B/f:C"), ("X-Y://s:A", "x-y://s:A"), ("x:///s:A", "x://s:A"),
      ("s://s:A", "s://s:A"), ("l:(Pure red)A", "l:(Pure%20red)A"),
      ("l:(%61%2f%3f%26%25)A", "l:(a%2F%3F%26%25)A"),
      ("l:(a)b)A/*:_9", "l:(a)b)A/*:_9"), ("l:(é#=:)A", "l:(é#=:)A"),
      ("l:(%00%0A)A", "l:(%00%0A)A"), ("*:A?%C3%A9%20%3D=l?:(a)B&c=i:C", "*:A?é%20%3D=l?:(a)B&c=i:C"),
      ("s:A?b=f?:B&c=l:(x=y)C", "s:A?b=f?:B&c=l:(x=y)C"), ("s:0/s:1", "s:0/s:1"),
      ("X://", "x://"), ("x://?a=s:A", "x://?a=s:A"), ("i?:A", "i?:A"),
      ("s:A/l?:(a)B?c=s:C", "s:A/l?:(a)B?c=s:C"),
      ("**:A", "**:A"), ("s:A/**:B?c=i?[]:C&d=l[]:(x)D", "s:A/**:B?c=i?[]:C&d=l[]:(x)D"),
    ])
  func canonical(pattern: String, expected: String) throws {
    #expect(try RoutePattern(pattern).description == expected)
  }

  @Test("the maximum number of components, and one more")
  func longest() throws {
    let many = (0..<RouteURL.maxComponents).map { "s:A\($0)" }.joined(separator: "/")
    #expect(try RoutePattern(many).components.count == RouteURL.maxComponents)
    #expect(throws: RoutingError.self) { try RoutePattern(many + "/s:B") }
    #expect(throws: RoutingError.self) { try RoutePattern(Array(repeating: 0x61, count: 65_537)) }
  }

  @Test("the description parses as an equal pattern")
  func readsBack() throws {
    var random = SplitMix64(seed: 4)
    for _ in 0..<5000 {
      let pattern = Self.random(&random)
      #expect(try RoutePattern(pattern.description) == pattern, "\(pattern)")
      #expect(!pattern.description.utf8.contains { $0 <= 0x20 })
    }
  }

  /// A random pattern with special characters.
  private static func random(_ random: inout SplitMix64) -> RoutePattern {
    var key = 0
    func nextKey() -> String {
      key += 1
      return "K_\(key)"
    }
    var components = (0..<random.number(0...4)).map { _ in
      RoutePattern.Component(type: type(&random), key: nextKey())
    }
    let tail = components.isEmpty || random.percent(30) ? nextKey() : nil
    if tail == nil, random.percent(30) { components[components.count - 1].isOptional = true }
    let names = Set((0..<random.number(0...3)).map { _ in text(&random) })
    let parameters = names.map {
      RoutePattern.Parameter(
        name: $0, type: type(&random), isOptional: random.percent(50), key: nextKey(),
        isArray: random.percent(30))
    }
    return RoutePattern(
      scheme: random.percent(50) ? random.pick(["x", "a+b", "s", "i-1.0"]) : nil, components: components,
      tail: tail, parameters: parameters, isTailOptional: tail != nil && random.percent(30))
  }

  private static func type(_ random: inout SplitMix64) -> ValueType {
    switch random.number(0...3) {
    case 0: .text
    case 1: .integer
    case 2: .number
    default: .literal(text(&random))
    }
  }

  private static func text(_ random: inout SplitMix64) -> [UInt8] {
    let marks = [
      "a", "B", "7", "/", "?", "&", "=", "%", ")", "(", ":", " ", "\t", "\n", "\0", "#", "é", "😀", "*", "+",
    ]
    return (0..<random.number(1...5)).flatMap { _ in Array(random.pick(marks).utf8) }
  }
}
