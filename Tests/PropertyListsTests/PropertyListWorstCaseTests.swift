import TestSupport
import Testing

@testable import PropertyLists

/// Inputs of one repeated token, at which a careless parser takes quadratic time or overflows its stack.
@Suite struct PropertyListWorstCaseTests {
  @Test(
    "XML",
    arguments: [
      "", "<plist>", "<plist><dict><key>a</key>", "<plist><dict><key>a</key><string>", "<!DOCTYPE [", "<!--",
      "<?",
    ])
  func xml(start: String) throws {
    for token in [
      "<", "<dict", "<dict>", "<dict/>", "</dict>", "<array ", "<!--", "<!---->", "--", "<?", "?",
      "<![CDATA[", "]]", "]",
      "&", "&#", "&#1", "&amp;", "<key>", "<key>a</key><string>x</string>", "<key>a</key><dict/>",
      "<string/>", "'", "\"", "/",
      "/>", " ", "x", "\0",
    ] {
      // The end closes the first tag, and all others within.
      for end in token.hasPrefix("<") ? ["", "/>"] : [""] {
        try LinearTime.check(repeating: token, after: start, before: end) {
          _ = PropertyList.strings(in: $0, for: ["a"])
        }
      }
    }
  }

  @Test("OpenStep", arguments: ["", "{", "a = ", "a = (", "\"", "/*", "//"])
  func openStep(start: String) throws {
    for token in [
      "{", "}", "(", ")", ",", ";", "a;", "a=b;", "a={", "a=(", "(a),", "\"", "'", "\\", "\\0", "\\U",
      "\\Ud800", "/", "//",
      "/*", "*/", "/**/", "*", "<", "<0 ", ">", "=", "a", " ", "\n",
    ] where start + token != "a = ;" {
      try LinearTime.check(repeating: token, after: start) { _ = PropertyList.strings(in: $0, for: ["a"]) }
    }
  }

  @Test("binary: many references to one long string, and keys that are long")
  func binary() throws {
    func list(_ size: Int, key: Int, value: Int) -> [UInt8] {
      func number(_ value: Int, _ size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: value >> (8 * (size - 1 - $0))) }
      }
      let count = size / 4
      var bytes = Array("bplist00".utf8) + [0xDF, 0x12] + number(count, 4)
      bytes += [UInt8](repeating: UInt8(key), count: count) + [UInt8](repeating: UInt8(value), count: count)
      let offsets = [8, bytes.count, bytes.count + 2]
      bytes += [0x51, 0x61, 0x5F, 0x12] + number(size / 2, 4) + [UInt8](repeating: 0x78, count: size / 2)
      let table = bytes.count
      bytes += offsets.flatMap { number($0, 4) } + [0, 0, 0, 0, 0, 0, 4, 1]
      return bytes + number(3, 8) + number(0, 8) + number(table, 8)
    }
    for (key, value) in [(1, 2), (2, 1), (2, 2), (1, 1)] {
      try LinearTime.check(name: "key \(key), value \(value)") {
        list($0, key: key, value: value)
      } parse: {
        let strings = PropertyList.strings(in: $0, for: ["a", String(repeating: "x", count: 255)])
        #expect(strings != nil)
      }
    }
  }

  @Test("UTF-16 and UTF-32")
  func wide() throws {
    for start in ["\u{FF}\u{FE}", "\u{FE}\u{FF}", "\u{FF}\u{FE}\0\0", "<\0", "\0<"] {
      let mark = start.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
      for token in ["\0", "<\0", "\0<", "\u{D8}", "(\0", "\0("] {
        try LinearTime.check(repeating: token) { _ = PropertyList.strings(in: mark + $0, for: ["a"]) }
      }
    }
  }
}
