import Routing
import Testing

/// The one way in which names and texts of others are printed.
@Suite struct ControlCharacterTests {
  @Test(
    "control characters are escaped and invalid UTF-8 is percent-encoded",
    arguments: [
      (Array("plain é 名".utf8), "plain é 名"), ([0x1B, 0x5B], #"\x1B["#),
      ([0x7F, 0x0A, 0x00], #"\x7F\x0A\x00"#),
      ([0xC2, 0x9B], #"\xC2\x9B"#), ([0xC2, 0xA0], "\u{A0}"), ([0x61, 0x9B, 0xFF], "a%9B%FF"),
      ([0xE2, 0x80, 0xAE], #"\xE2\x80\xAE"#),
    ] as [([UInt8], String)])
  func printing(bytes: [UInt8], text: String) {
    #expect(String(printing: bytes) == text)
    #expect(text.escapingControls == text)
  }

  @Test("JSON has no control character either, and the same value")
  func json() {
    let scalars = [
      0x00...0x1F, 0x7F...0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0x10000...0x10001,
    ]
    let text = String(
      String.UnicodeScalarView(scalars.joined().compactMap { Unicode.Scalar(UInt32($0)) }))
    let literal = JSONWriter.quoted(text)
    #expect(literal.escapingControls == literal)
    #expect(JSONValue(Array(literal.utf8))?.string == text)
  }
}
