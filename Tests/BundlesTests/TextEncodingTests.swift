import TestSupport
import Testing

@testable import Bundles

@Suite struct TextEncodingTests {
  @Test(
    "byte order marks",
    arguments: [
      ([0xEF, 0xBB, 0xBF, 0x61], "utf-8"), ([0xFF, 0xFE, 0x61, 0], "utf-16le"),
      ([0xFE, 0xFF, 0, 0x61], "utf-16be"),
      ([0xFF, 0xFE, 0, 0, 0x61, 0, 0, 0], "utf-32le"), ([0, 0, 0xFE, 0xFF], "utf-32be"),
      ([0xFF, 0xFE], "utf-16le"),
      ([0xFF], nil), ([0xEF, 0xBB], nil), ([], nil), ([0, 0, 0xFE], nil),
    ] as [([UInt8], String?)])
  func marks(content: [UInt8], expected: String?) {
    #expect(TextEncoding.byByteOrderMark(content) == expected)
    let type = "application/octet-stream"
    #expect(TextEncoding.name(ofContent: content, isWhole: true, type: type) == expected)
  }

  @Test(
    "textual types",
    arguments: [
      ("text/plain", true), ("text/x-anything", true), ("TEXT/HTML", true), ("text/html; charset=x", true),
      ("application/json", true), ("application/ld+json", true), ("image/svg+xml", true),
      ("application/javascript", true), ("application/xml", true), ("application/x-sh", true),
      ("application/x-shellscript", true), ("image/png", false), ("application/octet-stream", false),
      ("application/gzip", false), ("", false), ("text", false), ("application/json2", false),
    ])
  func types(type: String, expected: Bool) {
    #expect(TextEncoding.isTextual(type) == expected)
    let name = TextEncoding.name(ofContent: Array("é".utf8), isWhole: true, type: type)
    #expect(name == (expected ? "utf-8" : nil))
  }

  @Test("validation agrees with the standard library", arguments: [UInt64](1...4))
  func validity(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let pieces: [[UInt8]] =
      ["a", "é", "\u{7FF}", "€", "\u{800}", "\u{FFFF}", "😀", "\u{10FFFF}", "\u{D7FF}"].map { Array($0.utf8) }
    let bytes: [UInt8] = [0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xF5, 0xFF]
    for _ in 0..<5000 {
      var text: [UInt8] = []
      for _ in 0..<Int.random(in: 0...5, using: &random) {
        if Int.random(in: 0..<4, using: &random) == 0 {
          text.append(bytes.randomElement(using: &random) ?? 0)
        } else {
          text += pieces.randomElement(using: &random) ?? []
        }
      }
      #expect(
        TextEncoding.isUTF8(text[...], isTruncated: false) == (String(validating: text, as: UTF8.self) != nil)
      )
    }
  }

  @Test("an incomplete last character is valid only in a truncated text")
  func truncated() {
    let emoji = Array("😀".utf8)
    for length in 1...3 {
      let text = Array("a".utf8) + emoji.prefix(length)
      #expect(TextEncoding.name(ofContent: text, isWhole: false, type: "text/plain") == "utf-8")
      #expect(TextEncoding.name(ofContent: text, isWhole: true, type: "text/plain") == nil)
    }
    #expect(TextEncoding.name(ofContent: [0xE0, 0x80], isWhole: false, type: "text/plain") == nil)
    #expect(TextEncoding.name(ofContent: [0xFF], isWhole: false, type: "text/plain") == nil)
  }

  @Test("only the first 64 KiB are examined")
  func long() {
    let most = [UInt8](repeating: 0x61, count: TextEncoding.leadingCount)
    #expect(TextEncoding.name(ofContent: most + [0xFF], isWhole: true, type: "text/plain") == "utf-8")
    #expect(TextEncoding.name(ofContent: most.dropLast() + [0xFF], isWhole: true, type: "text/plain") == nil)
    let truncated = most.dropLast() + Array("é".utf8)
    #expect(TextEncoding.name(ofContent: truncated, isWhole: true, type: "text/plain") == "utf-8")
    #expect(TextEncoding.name(ofContent: [], isWhole: true, type: "text/plain") == "utf-8")
  }
}
