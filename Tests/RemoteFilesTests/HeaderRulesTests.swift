import TestSupport
import Testing

@testable import RemoteFiles

struct HeaderRulesTests {
  private func headers(_ text: String, _ url: String) throws -> [String] {
    let origin = try #require(RemoteURL(Array(url.utf8))?.origin)
    return try HeaderRules(Array(text.utf8)).headers(for: origin).map { String(decoding: $0, as: UTF8.self) }
  }

  private static let text = """
    Authorization:Bearer a:b=\t
      # comment

    [Example.ORG]
    X-Host: one
    [example.org:8443]\r
    X-Port: two\r
    [[::1]:80]
    X-Six: three
    """

  @Test(
    "headers are for all hosts, for one, or for one port of it",
    arguments: [
      ("https://other/a", []), ("https://example.org/a", ["X-Host: one"]),
      ("http://EXAMPLE.org:8443/a", ["X-Host: one", "X-Port: two"]),
      ("https://me:pass@example.org:8443", ["X-Host: one", "X-Port: two"]),
      ("http://[::1]/", ["X-Six: three"]),
      ("http://[::1]:81/", []), ("http://example.org.evil/", []),
    ])
  func sections(url: String, expected: [String]) throws {
    #expect(try headers(Self.text, url) == ["Authorization: Bearer a:b="] + expected)
  }

  @Test(
    "what is no header, or would change the request's meaning, is refused with its line",
    arguments: [
      "token", ": value", "A B: c", "A:", "A: \u{1}", "Range: bytes=0-", "host: other", "If-Match: *", "[]",
      "[a b]",
      "[a:99999]", "[a/b]", "[a", "Ä: b", "A: b\u{7F}",
    ])
  func malformed(line: String) {
    for before in ["", "A: b\n\n"] {
      #expect {
        try HeaderRules(Array((before + line + "\nC: d").utf8))
      } throws: { error in
        (error as? HeaderRules.Mistake)?.line == (before.isEmpty ? 1 : 3)
      }
    }
  }

  @Test("no bytes end the parser, and what it takes has no line end")
  func anything() throws {
    let alphabet = Array("[]:#aA \t\r\n\u{0}\u{7F}/.0é".utf8)
    var random = SplitMix64(seed: 7)
    let origin = try #require(RemoteURL(Array("http://a:0".utf8))?.origin)
    for _ in 0..<20_000 {
      let text = (0..<Int.random(in: 0...30, using: &random)).map { _ in
        alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
      }
      guard let rules = try? HeaderRules(text) else { continue }
      for header in rules.headers(for: origin) {
        #expect(header.allSatisfy { $0 >= 0x20 || $0 == 9 } && header.contains(UInt8(ascii: ":")))
      }
    }
  }
}
