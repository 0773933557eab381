import FoundationEssentials
import TestSupport
import Testing

@testable import Routing

/// The parser, and round trips through ``JSONWriter``.
@Suite struct JSONValueTests {
  private func read(_ text: String) -> JSONValue? { JSONValue(Array(text.utf8)) }

  @Test("integers and numbers are distinct")
  func numbers() {
    let cases: [(String, JSONValue)] = [
      ("0", .integer(0)), ("-0", .integer(0)), ("8", .integer(8)), ("8.0", .number(8)), ("3.1", .number(3.1)),
      ("-1e2", .number(-100)), ("1E+2", .number(100)), ("9223372036854775807", .integer(.max)),
      ("-9223372036854775808", .integer(.min)), ("9223372036854775808", .number(0x1p63)),
      ("0.1", .number(0.1)), ("5e-324", .number(.leastNonzeroMagnitude)),
      ("1.7976931348623157e308", .number(.greatestFiniteMagnitude)),
    ]
    for (text, value) in cases { #expect(read(text) == value, "\(text)") }
    for text in ["1e999", "01", "1.", ".5", "+1", "-", "1e", "0x1", "1 2", "NaN", "Infinity", ""] {
      #expect(read(text) == nil, "\(text)")
    }
  }

  @Test("strings with all escape sequences")
  func texts() {
    let cases: [(String, String)] = [
      (#""""#, ""), (#""a\"\\\/\b\f\n\r\tz""#, "a\"\\/\u{8}\u{C}\n\r\tz"), (#""\u0041\u00e9""#, "Aé"),
      (#""\ud83e\udd86🦆""#, "🦆🦆"),
    ]
    for (text, value) in cases { #expect(read(text) == .string(value), "\(text)") }
    for text in [
      #"""#, #""\""#, #""\x""#, #""\u00g0""#, #""\ud83e""#, #""\ud83eA""#, #""\udd86""#, "\"\n\"", "'a'",
    ] {
      #expect(read(text) == nil, "\(text)")
    }
    #expect(JSONValue([0x22, 0xFF, 0x22]) == nil)
  }

  @Test("objects, arrays and literals")
  func nesting() {
    #expect(
      read(#" { "a" : [ 1 , { } , [ ] , null ] , "b" : true , "c" : false } "#)
        == .object([
          "a": .array([.integer(1), .object([:]), .array([]), .null]), "b": .boolean(true),
          "c": .boolean(false),
        ]))
    for text in [
      "{", "[1,]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "[1", "nul", "truefalse", "{} {}", "]",
    ] {
      #expect(read(text) == nil, "\(text)")
    }
    #expect(read(String(repeating: "[", count: 64) + String(repeating: "]", count: 64)) != nil)
    #expect(read(String(repeating: "[", count: 100_000)) == nil)
  }

  @Test("JSONWriter's output parses as the same value", arguments: 0..<20)
  func roundTrip(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      let integer = Int64(bitPattern: random.next()) >> Int64(random.number(0...63))
      let bits = Double(bitPattern: random.next())
      let number = bits.isFinite ? bits : 0.5
      let scalars = (0..<random.number(0...8)).compactMap { _ in
        Unicode.Scalar(UInt32(random.number(0...0x1F9FF)))
      }
      let text = String(String.UnicodeScalarView(scalars))
      var json = JSONWriter()
      json.object { json in
        json.name("i")
        json.integer(integer)
        json.name("d")
        json.number(number)
        json.name(text + "t")
        json.string(text)
      }
      let expected: JSONValue = .object([
        "i": .integer(integer), "d": .number(number), text + "t": .string(text),
      ])
      #expect(JSONValue(json.bytes) == expected, "\(String(decoding: json.bytes, as: UTF8.self))")
    }
  }

  @Test("random bytes never trap and are accepted if and only if Foundation accepts them", arguments: 0..<10)
  func mutations(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let start = Array(#"{"a":[1,-2.5e3,"x\u00e9\n"],"b":{"c":true,"d":null},"e":""}"#.utf8)
    for _ in 0..<2000 {
      var bytes = start
      for _ in 0...random.number(0...2) {
        bytes[random.number(0...bytes.count - 1)] = random.pick(
          Array(#"{}[]",:\0123456789.eE+-tfn u/x"#.utf8))
      }
      let isAccepted = JSONValue(bytes) != nil
      let isJSON = (try? JSONDecoder().decode(Anything.self, from: Data(bytes))) != nil
      #expect(isAccepted == isJSON, "\(String(decoding: bytes, as: UTF8.self))")
    }
  }

  @Test("a posted result parses with its values")
  func posted() throws {
    let table = try table([(name: "N", pattern: "s:A/i:B/f:C/*:D?q=i?:E")])
    let match = try #require(try table.match(RouteURL(Array("x://a%22b/-5/8/c/d?z=1#f".utf8))))
    let result = RouteResult(
      sequence: 7, time: Timestamp(seconds: 0, nanoseconds: 5_000_000), url: Array("x:é".utf8),
      outcome: .posted(match))
    let posted = try #require(ResultLine(result.json[...])?.posted)
    #expect(posted.sequence == 7 && posted.name == "N" && posted.url == "x:é")
    #expect(posted.time == "1970-01-01T00:00:00.005Z" && posted.query == "z=1" && posted.fragment == "f")
    #expect(posted.userInfo == ["A": .text("a\"b"), "B": .integer(-5), "C": .number(8), "D": .text("c/d")])
    let matched = RouteResult(
      sequence: 7, time: Timestamp(seconds: 0, nanoseconds: 0), url: [], outcome: .matched(match))
    #expect(try #require(ResultLine(matched.json[...])).posted == nil)
  }
}

/// Any JSON.
private enum Anything: Decodable {
  case value

  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int?
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
  }

  init(from decoder: any Decoder) throws {
    if let object = try? decoder.container(keyedBy: Key.self) {
      for key in object.allKeys { _ = try object.decode(Anything.self, forKey: key) }
    } else if var array = try? decoder.unkeyedContainer() {
      while !array.isAtEnd { _ = try array.decode(Anything.self) }
    } else {
      let value = try decoder.singleValueContainer()
      if !value.decodeNil(), (try? value.decode(Bool.self)) == nil, (try? value.decode(String.self)) == nil {
        _ = try value.decode(Double.self)
      }
    }
    self = .value
  }
}
