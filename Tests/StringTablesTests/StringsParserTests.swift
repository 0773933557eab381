import PropertyLists
import StringTables
import TestSupport
import Testing

/// The text format of `.strings` files: a row for each rule.
@Suite struct StringsParserTests {
  @Test(
    "entries",
    arguments: [
      ("", ""), (" \n", ""), ("// only a comment", ""), ("\"a\" = \"b\";", "a=b"), ("a=b;", "a=b"),
      ("'a'='b';", "a=b"),
      ("\"a\";", "a=a"), ("a;b;", "a=a b=b"), ("{ a = b; }", "a=b"), ("{}", ""), ("{a;}", "a=a"),
      ("/* c */ a /* d */ = // e\n b /* f */; // g", "a=b"),
      ("a = /usr/lib; b-c.d_e$f:g = 1;", "a=/usr/lib b-c.d_e$f:g=1"),
      ("a//b = c;", "a//b=c"), ("a = \"\"; \"\" = b;", "a= =b"), ("a=b;a=c;", "a=c"),
      ("a=1;b=2;a=3;", "a=3 b=2"),
      ("\u{2028}a = b;\u{2029}", "a=b"), ("a\u{B}=\u{C}b\r;", "a=b"),
      ("\"multi\nline\" = x;", "multi\nline=x"),
    ])
  func entries(text: String, expected: String) {
    #expect(ParsedTable(text).summary == expected)
  }

  @Test(
    "escapes",
    arguments: [
      (#"\n\t\r\\\"\'"#, "\n\t\r\\\"'"), (#"\a\b\f\v"#, "\u{7}\u{8}\u{C}\u{B}"), (#"\q\é\/"#, "qé/"),
      ("\\\nx", "\nx"),
      (#"\101\7\18\1234"#, "A\u{7}\u{1}8S4"), (#"\200\237\240\340"#, "\u{A0}÷©ì"),
      (#"\U00e9\U20AC"#, "é€"), (#"\u00e9\u20ac"#, "é€"), (#"\U41\Ux"#, "A\0x"), (#"\U00e9f"#, "éf"),
      (#"\Ud83d\Ude00"#, "😀"), (#"\ud83d\ude00"#, "😀"), (#"\ud83d\Ude00"#, "😀"), (#"\Ud83d"#, "\u{FFFD}"),
      (#"\Ude00"#, "\u{FFFD}"), (#"\Ud83dx"#, "\u{FFFD}x"), (#"\Ud83d\U0041"#, "\u{FFFD}A"),
    ])
  func escapes(text: String, expected: String) {
    #expect(ParsedTable("a = \"\(text)\";").summary == "a=\(expected)")
  }

  @Test(
    "an error has a line and a column, and what precedes it is kept",
    arguments: [
      ("a=b", "a=b 1:4"), ("a=b;\n\"c\" = \"d\"\n\"e\" = \"f\";", "a=b c=d 2:10"), ("a", "1:2"),
      ("a b", "1:3"),
      ("a=b;\n  é = x;", "a=b 2:3"), ("a=b;\r\nc=d;\r\ré=x;", "a=b c=d 4:1"), ("\"é😀e\u{301}\" x", "1:7"),
      ("a=b; \"c", "a=b 1:6"), ("a=b;\n\"c\" = \"d;\ne=f;\n", "a=b 2:7"), ("a=b; /* open", "a=b 1:6"),
      ("{a=b;", "a=b 1:6"), ("{a=b;} x", "a=b 1:8"), ("a=b;}", "a=b 1:5"), ("{a=b}", "a=b 1:5"),
      ("a=;", "1:3"),
      ("=a;", "1:1"), ("a=b;;", "a=b 1:5"), ("a=(b);", "1:3"), ("a={b=c;};", "1:3"), ("a=<00>;", "1:3"),
      ("{", "1:2"),
      ("a=\"b\\", "1:3"), ("a=b; c", "a=b 1:7"), ("a = b c;", "a=b 1:6"),
    ])
  func errors(text: String, expected: String) {
    #expect(ParsedTable(text).summary == expected)
  }

  @Test("errors name the reason")
  func reasons() {
    let reasons = [
      "a=b": "1:4: ';' is missing", "a b;": "1:3: '=' or ';' is missing",
      "a=(b);": "1:3: a value that is not a string",
      "/*": "1:1: a comment is not closed", "\"": "1:1: a quoted string is not closed",
      "{": "1:2: '}' is missing",
      "}": "1:1: '}' without a '{'",
    ]
    for (text, reason) in reasons { #expect(ParsedTable(text).error?.description == reason) }
  }

  @Test(
    "a comment is kept with its key",
    arguments: [
      ("/* c */ a=b;", "/* c */"), ("// c\na=b;", "// c"), ("// c\r\n// d\r\na=b;", "// c\n// d"),
      ("/* c */ /* d\ne */\n\n a=b;", "/* c */\n/* d\ne */"), ("a=b; // c", "// c"),
      ("x=y; /* c */ a=b;", "/* c */"), ("a=b; /* c */ x=y;", nil),
      ("/* c */ a=b; /* d */", "/* c */\n/* d */"),
      ("a /* x */ = /* y */ b /* z */;", nil), ("a=b; \n// c\n", nil), ("x=y; // c\n a=b;", nil),
      ("{ /* c */ a=b; }", "/* c */"),
      ("// b\na=1;// c\n// d\na=2;", "// d"), ("/**/a;", "/**/"),
    ] as [(String, String?)])
  func comments(text: String, expected: String?) {
    #expect(ParsedTable(text).table.entry(for: "a")?.comment == expected)
  }

  @Test("keys differ by their code points")
  func composition() {
    let table = ParsedTable("\"é\" = composed; \"e\u{301}\" = decomposed;").table
    #expect(table.entries.count == 2)
    #expect(table["é"] == "composed" && table["e\u{301}"] == "decomposed" && table["e"] == nil)
  }

  @Test("encodings", arguments: ["\"é\" = \"日😀\";", "a=b;", "\"日\";", "/* é */ 'x' = y;"])
  func encodings(text: String) {
    func units<Unit: FixedWidthInteger>(_ units: [Unit], big: Bool) -> [UInt8] {
      units.flatMap { unit in withUnsafeBytes(of: big ? unit.bigEndian : unit.littleEndian) { Array($0) } }
    }
    let marked = "\u{FEFF}" + text
    let expected = StringTable.parse(Array(text.utf8))
    #expect(expected.error == nil && expected.table.entries.count == 1)
    var forms = [Array(marked.utf8)]
    for big in [false, true] {
      forms += [units(Array(marked.utf16), big: big), units(Array(text.utf16), big: big)]
      forms += [
        units(marked.unicodeScalars.map(\.value), big: big),
        units(text.unicodeScalars.map(\.value), big: big),
      ]
    }
    for content in forms {
      let parsed = StringTable.parse(content)
      #expect(parsed.error == nil && parsed.table == expected.table, "\(content)")
    }
  }

  @Test("a character that is not valid in the encoding ends the table")
  func malformed() {
    let latin = StringTable.parse(Array("a=b;\n\"c\" = \"".utf8) + [0xE9] + Array("\";".utf8))
    #expect(latin.table["a"] == "b" && latin.table.entries.count == 1)
    #expect(latin.error?.description == "2:8: a character that is not valid UTF-8")
    let odd = StringTable.parse([0xFF, 0xFE, 0x61, 0, 0x3B, 0, 0x62])
    #expect(odd.table["a"] == "a" && odd.error?.description == "1:3: a character that is not valid UTF-16")
    let lone = StringTable.parse([0xFE, 0xFF, 0, 0x61, 0, 0x3B, 0xD8, 0])
    #expect(lone.table["a"] == "a" && lone.error?.position?.column == 3)
    // An earlier error of the syntax comes first.
    let earlier = StringTable.parse(Array("a=b c;\n".utf8) + [0xE9])
    #expect(earlier.error?.description == "1:4: ';' is missing")
  }
}
