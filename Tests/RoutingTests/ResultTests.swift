import Foundation
import TestSupport
import Testing

@testable import Routing

@Suite struct ResultTests {
  private let time = Timestamp(seconds: 1_767_323_045, nanoseconds: 678_999_999)

  private func line(_ url: String, _ outcome: RouteResult.Outcome, sequence: UInt64 = 1) -> String {
    let json = RouteResult(sequence: sequence, time: time, url: bytes(url), outcome: outcome).json
    return String(decoding: json, as: UTF8.self)
  }

  private func match(_ url: String, _ pattern: String, name: String = "N") throws -> RouteMatch {
    try #require(try table([(name, pattern)]).match(RouteURL(bytes(url))))
  }

  @Test("a posted result has the documented text")
  func example() throws {
    let url = "ccfurlresponder://animal/platypus/3.1/4"
    let pattern = "l:(animal)CCFAnimalDomain/s:CCFAnimal/f:CCFAverageWeight/i:CCFAverageLifeExpectancy"
    #expect(
      line(url, .posted(try match(url, pattern, name: "CCFAnimalNotification"))) == #"""
        {"sequence":1,"time":"2026-01-02T03:04:05.678Z","url":"ccfurlresponder://animal/platypus/3.1/4",\#
        "outcome":"posted","notification":"CCFAnimalNotification","userInfo":{"CCFAnimal":"platypus",\#
        "CCFAnimalDomain":"animal","CCFAverageLifeExpectancy":4,"CCFAverageWeight":3.1},"scheme":"ccfurlresponder","listeners":0}
        """#)
  }

  @Test("a resolved result has the documented text; bytes that are not UTF-8 are encoded")
  func resolved() {
    let logo = ResolvedResource(
      path: bytes("logo.png"), file: FileURL.text(of: bytes("/mnt/logo.png")),
      layer: bytes("/home/me/overrides"), mimeType: "image/png", expectedContentLength: 5123,
      textEncodingName: nil)
    #expect(
      line("rsrc:///logo.png", .resolved(logo), sequence: 2) == #"""
        {"sequence":2,"time":"2026-01-02T03:04:05.678Z","url":"rsrc:///logo.png","outcome":"resolved",\#
        "path":"logo.png","file":"file:///mnt/logo.png","layer":"/home/me/overrides",\#
        "mimeType":"image/png","expectedContentLength":5123,"textEncodingName":null}
        """#)
    let path = bytes(#"/a b/\xFF"#) + bytes("%#?é")
    let odd = ResolvedResource(
      path: path, file: FileURL.text(of: path, isDirectory: true), layer: path, mimeType: "inode/directory",
      expectedContentLength: nil, textEncodingName: "utf-8")
    let url = "file:///a%20b/%FF%25%23%3F%C3%A9/"
    #expect(
      line("rsrc:x", .resolved(odd)).hasSuffix(
        #""path":"/a b/%FF%#?é","file":"\#(url)","layer":"/a b/%FF%#?é","mimeType":"inode/directory","#
          + #""expectedContentLength":null,"textEncodingName":"utf-8"}"#))
  }

  @Test("the other outcomes")
  func outcomes() throws {
    let start = #"{"sequence":18446744073709551615,"time":"2026-01-02T03:04:05.678Z","url":"#
    let noRoute = RoutingError.noRoute(for: try RouteURL(bytes("x://nobody/home")))
    #expect(
      line("x://nobody/home", .rejected(noRoute), sequence: .max)
        == start
        + #""x://nobody/home","outcome":"rejected","errno":"ENOENT","error":"no route matches x://nobody/home"}"#
    )
    #expect(
      line("x:%", .rejected(.malformed("why", at: 2)), sequence: .max)
        == start + #""x:%","outcome":"rejected","errno":"EINVAL","error":"column 3: why"}"#)
    #expect(
      line("x:a?b#c", .matched(try match("x:a?b#c", "s:A")), sequence: .max)
        == start
        + #""x:a?b#c","outcome":"matched","notification":"N","userInfo":{"A":"a"},"scheme":"x","query":"b","fragment":"c"}"#
    )
    #expect(line("reset", .applied(), sequence: .max) == start + #""reset","outcome":"applied"}"#)
    #expect(
      line("route N s:A", .applied(overlaps: RouteOverlaps(["A", "B"], isIncomplete: false)), sequence: .max)
        == start + #""route N s:A","outcome":"applied","overlaps":["A","B"],"overlapCount":2}"#)
    let many = RouteOverlaps((0..<99).map { "N\($0)" }, isIncomplete: true)
    #expect(
      line("route N s:A", .applied(overlaps: many)).hasSuffix(
        #""N15"],"overlapCount":99,"overlapsIncomplete":true}"#))
    #expect(
      line(
        "X://h:80/a?s=1&t=x&s=2",
        .posted(try match("X://h:80/a?s=1&t=x&s=2", "s:H/s:A?s=i[]:S"), listeners: 3)
      )
      .hasSuffix(
        #""userInfo":{"A":"a","H":"h","S":[1,2]},"scheme":"x","port":80,"query":"t=x","listeners":3}"#))
  }

  @Test("strings round-trip through Foundation")
  func texts() throws {
    var random = SplitMix64(seed: 8)
    for _ in 0..<2000 {
      let text = String(
        String.UnicodeScalarView((0..<random.number(0...20)).map { _ in Self.scalar(&random) }))
      var json = JSONWriter()
      json.object { json in
        json.name(text)
        json.strings([text, text])
      }
      #expect(try parsed(json.bytes) as? [String: [String]] == [text: [text, text]])
      #expect(!json.bytes.contains { $0 < 0x20 })
    }
  }

  private static func scalar(_ random: inout SplitMix64) -> Unicode.Scalar {
    let range = random.pick([0...0x1F, 0x20...0x7F, 0x80...0xFFFF, 0x1_0000...0x10_FFFF])
    return Unicode.Scalar(UInt32(random.number(range))) ?? "\u{2028}"
  }

  @Test("numbers round-trip through Foundation")
  func numbers() throws {
    var random = SplitMix64(seed: 7)
    let edges = [0, -0.0, 4, 1e22, 1e-7, .leastNonzeroMagnitude, .greatestFiniteMagnitude, -.pi]
    for value in edges + (0..<2000).map({ _ in Double(bitPattern: random.next()) }).filter(\.isFinite) {
      var json = JSONWriter()
      json.object { json in
        json.name("f")
        json.number(value)
        json.name("i")
        json.integer(Int64(truncatingIfNeeded: random.next()))
      }
      // JSONSerialization does not round correctly.
      let read = try #require(try JSONDecoder().decode([String: Double].self, from: Data(json.bytes))["f"])
      #expect(read.bitPattern == value.bitPattern)
    }
    var json = JSONWriter()
    json.object { json in
      json.name("null")
      json.null()
      json.name("least")
      json.value(.integer(.min))
      json.name("whole")
      json.value(.number(8))
    }
    #expect(
      String(decoding: json.bytes, as: UTF8.self)
        == #"{"null":null,"least":-9223372036854775808,"whole":8.0}"#)
  }

  @Test(
    "bytes of a URL that are not UTF-8 are percent-encoded",
    arguments: [
      (#"x:\xFFa\xC3"#, "x:%FFa%C3"), (#"x:é\xE2\x82"#, "x:é%E2%82"),
      (#"\xF0\x9F\x98\x80\xED\xA0\x80"#, "😀%ED%A0%80"),
      (#"\xC0\xAF"#, "%C0%AF"), ("", ""), ("plain", "plain"),
    ])
  func invalid(url: String, expected: String) throws {
    #expect(String(escaping: bytes(url)) == expected)
    let line = line(url, .applied())
    #expect(try parsed(Array(line.utf8))["url"] as? String == expected)
  }

  @Test("timestamps agree with the C library")
  func times() {
    var random = SplitMix64(seed: 6)
    let edges: [Int] = [0, -1, 951_782_400, 1_709_164_800, 4_107_542_400, 253_402_300_799, -62_167_219_200]
    for seconds in edges + (0..<2000).map({ _ in random.number(-62_167_219_200...253_402_300_799) }) {
      var (time, parts) = (time_t(seconds), tm())
      gmtime_r(&time, &parts)
      let expected = String(
        format: "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
        parts.tm_hour, parts.tm_min, parts.tm_sec, 7)
      #expect(Timestamp(seconds: Int64(seconds), nanoseconds: 7_999_999).description == expected)
    }
    #expect(Timestamp(seconds: .max, nanoseconds: .max).description == "9999-12-31T23:59:59.999Z")
    #expect(Timestamp(seconds: .min, nanoseconds: -1).description == "0000-01-01T00:00:00.000Z")
  }
}
