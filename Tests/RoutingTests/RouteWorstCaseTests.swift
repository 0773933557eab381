import TestSupport
import Testing

@testable import Routing

/// Inputs of one repeated token, at which a careless parser takes quadratic time or overflows its stack.
@Suite struct RouteWorstCaseTests {
  private static let tokens = [
    "/", "%", "%2F", "%41", "%FF", ":", "(", ")", "[", "]", "?", "&", "=", "a=b&", "#", "@", "\\", "\"",
    "s:A/", "l:(", "l:(a)A/",
    "s:", "i:A?", "*:", "0", "1", "-", ".", "e", " ", "\t", "\r", "\n", "\0", "x:", "a", "é", "route ", "{",
    "[1", "[[", "{\"a\":",
    "\\u", "\\uD800", "\"a\",", "1,", "null",
  ]

  @Test(
    "commands, URLs and patterns",
    arguments: ["", "x:", "x://[", "x:?", "route A ", "route A s:B?", "match x:", "unroute "])
  func commands(start: String) throws {
    for token in Self.tokens {
      try LinearTime.check(repeating: token, after: start) { _ = try? ControlCommand($0) }
    }
  }

  @Test("URLs and patterns of the longest size", arguments: ["x:", "x://[", "x:?", "s:A/", "l:(", "s:B?"])
  func longest(start: String) throws {
    for token in Self.tokens {
      try LinearTime.check(repeating: token, after: start, largest: RouteURL.maxLength) {
        _ = try? RouteURL(Array($0.prefix(RouteURL.maxLength)))
        _ = try? RoutePattern(Array($0.prefix(RouteURL.maxLength)))
      }
    }
  }

  @Test("JSON", arguments: ["", "[", "{\"", "\"", "-", "0.", "1e", "[\""])
  func json(start: String) throws {
    for token in Self.tokens {
      try LinearTime.check(repeating: token, after: start) { _ = JSONValue($0) }
    }
  }

  @Test("result lines", arguments: ["", "{\"sequence\":1", "{\"sequence\":1,\"url\":\""])
  func results(start: String) throws {
    for token in Self.tokens + [
      ",\"outcome\":\"", ",\"url\":\"", ",\"outcome\":\"posted\",\"notification\":\"",
    ] {
      try LinearTime.check(repeating: token, after: start, before: "}") {
        let line = ResultLine($0[...])
        _ = line?.isRejected
        _ = line?.isResult(of: Array("x:/".utf8))
        _ = line?.isPosted(as: [Array("A".utf8)])
        _ = line?.posted
      }
    }
  }

  @Test("text that is not UTF-8, and percent-encoding")
  func escaping() throws {
    for token: [UInt8] in [[0xFF], [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98], [0x41, 0xFF], [0x2F], [0x00]] {
      try LinearTime.check(name: "\(token)") { size in
        Array(repeatElement(token, count: size / token.count / 8).joined())
      } parse: { text in
        _ = String(escaping: text)
        _ = PercentCoding.encoded(path: text)
        _ = JSONWriter.quoted(String(decoding: text, as: UTF8.self))
      }
    }
  }
}
