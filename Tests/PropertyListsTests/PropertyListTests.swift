import Foundation
import TestSupport
import Testing

@testable import PropertyLists

/// Compares the parsers with Foundation's for texts that do not make those trap.
@Suite struct PropertyListTests {
  private static func ours(_ text: [UInt8]) -> [String: String]? {
    PropertyList.strings(in: text, for: ["a", "b", "é", ""])
  }

  private static func theirs(_ text: [UInt8]) -> [String: String]? {
    let list = try? PropertyListSerialization.propertyList(from: Data(text), options: [], format: nil)
    guard let dictionary = list as? [String: Any] else { return nil }
    return dictionary.compactMapValues { $0 as? String }.filter { ["a", "b", "é", ""].contains($0.key) }
  }

  @Test(
    "OpenStep",
    arguments: [
      "{a=b;}", "a=b;", "a=b;b=a", "{a=b}", "{a=b;};", "{a=b;} x", "a;b;", "{ a; }", "'a'='b';",
      "\"a\"=\"b\";",
      "/* c */ a /* c */ = // c\n b; // end", "a = /usr/lib; b = a.b-c_d$e:f/g;", "a = (b, c, ); b = (); ",
      "a = (b c);", "a = (,);", "a = {b=c;}; b = x;", "a = {b=c;", "a = <0fbd 77>; b = x;",
      "a = <0g>;",
      #"a = "\n\t\"\\\a\b\v\f\r\q";"#, #"a = "\101\8\1234";"#, #"a = "\200\237\240\277\300\337\340\375";"#,
      #"a = "\U00e9\U20ac\Ud83d\Ude00";"#, "a = \"multi\nline\";", "a = \"\";", "\"\" = b;", "a", "(a)", "{",
      "a=", "=a;",
      "a==b;", "a=b;a=c;", "{ a = ((((b)))); b = c; }", "a = \"x",
      "a = b; //",
      "a = b; /* open", "// c\r a = b;", "\"a\\", "{ a = b;; }", "{ (a) = b; }",
    ])
  func openStep(text: String) {
    #expect(Self.ours(Array(text.utf8)) == Self.theirs(Array(text.utf8)))
  }

  @Test(
    "XML",
    arguments: [
      "<plist><dict><key>a</key><string>x</string></dict></plist>",
      "<dict><key>a</key><string>x</string></dict>",
      "<plist version='1.0'><dict><key>a</key><string>x</string></dict></plist> rest",
      "<plist><dict><key>a</key><string>x</string></dict>", "<plist><dict></dict></plist>",
      "<plist><dict/></plist>",
      "<plist></plist>", "<plist/>", "<plist><array/></plist>", "<plist><dict/><dict/></plist>",
      "<plist><dict><key>a</key></dict></plist>", "<plist><dict><string>a</string></dict></plist>",
      "<plist><dict><key>a</key><key>b</key></dict></plist>",
      "<plist><dict><key>a</key>text<string>x</string></dict></plist>",
      "<plist><dict><key>a</key><!-- c --><string>x</string><?pi?></dict></plist>",
      "<plist><dict><key>a</key><string>x<!-- c --></string></dict></plist>",
      "<plist><dict><key>a</key><string>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;</string></dict></plist>",
      "<plist><dict><key>a</key><string>&nbsp;</string></dict></plist>",
      "<plist><dict><key>a</key><string>x<![CDATA[<&]]>y]]</string></dict></plist>",
      "<plist><dict><key>a</key><string/><key>b</key><string></string></dict></plist>",
      "<plist><dict><key/><string>x</string></dict></plist>",
      "<plist><dict><key>a</key><true/><key>b</key><false></false></dict></plist>",
      "<plist><dict><key>a</key><integer>3</integer><key>b</key><real>1.5</real></dict></plist>",
      "<plist><dict><key>a</key><data>AAEC</data><key>b</key><string>x</string></dict></plist>",
      "<plist><dict><key>a</key><string>x</string ></dict ></plist >",
      "<plist><dict><key>a</key><string attr='1'>x</string></dict></plist>",
      "<plist><dict><key>a</key><dict><key>b</key><string>x</string></dict></dict></plist>",
      "<plist><dict><key>a</key><array><string>x</string><dict/></array></dict></plist>",
      "<plist><dict><key>a</key><string>x</array></dict></plist>", "<plist><dict></array></plist>",
      "<plist><dict><key>a</key><string>1</string><key>a</key><string>2</string></dict></plist>",
      "<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE plist PUBLIC '-//A//B' 'http://x'><plist><dict/></plist>",

      "<!-- c --><plist><dict/></plist>", "\n <plist><dict/></plist>",
      "<plist><dict><unknown/></dict></plist>",
      "<plist><dict><key>a</key><string>é</string></dict></plist>", "<plist><dict><key>a</key><string>x", "<",
      "<plist", "<plist>", "<plist><dict>", "<plist><dict><key>", "<plist><dict><key>a</key>", "<plist><!--",
      "<plist><dict><key>a</key><string>&",
      "<plist><dict><key>a</key><string>&#x110000;</string></dict></plist>",
    ])
  func xml(text: String) {
    #expect(Self.ours(Array(text.utf8)) == Self.theirs(Array(text.utf8)))
  }

  @Test("texts that Foundation takes in part, or refuses")
  func differences() {
    // It drops the rest of a `.strings` file at the first odd character.
    for text in ["a=b;}", "a=\"é\"; é = x;", "/*", "/* a=b;"] { #expect(Self.ours(Array(text.utf8)) == nil) }
    let internalSubset = "<!DOCTYPE plist [<!ELEMENT plist ANY> <!-- ] --> <!ENTITY a ']>'>]>"
    let text = internalSubset + "<plist><dict><key>a</key><string>x</string></dict></plist>"
    #expect(Self.ours(Array(text.utf8)) == ["a": "x"])
  }

  @Test("encodings with and without byte order marks", arguments: [true, false])
  func encodings(isXML: Bool) throws {
    let text =
      isXML
      ? "<plist><dict><key>a</key><string>é€😀</string></dict></plist>" : "{ a = \"é€😀\"; b = x; }"
    let encodings: [String.Encoding] = [
      .utf8, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian, .utf32BigEndian,
    ]
    for encoding in encodings {
      let data = try #require(text.data(using: encoding))
      #expect(Self.ours(Array(data))?["a"] == "é€😀", "\(encoding)")
    }
    #expect(Self.ours([0xEF, 0xBB, 0xBF] + Array(text.utf8))?["a"] == "é€😀")
    #expect(Self.ours(Array(text.utf8) + [0xFF]) == nil)
    #expect(Self.ours([0xFF, 0xFE, 0x41]) == nil)
    #expect(Self.ours([0xFF, 0xFE, 0x00, 0xD8]) == nil)
  }

  @Test("the declared encoding")
  func declaration() {
    func document(_ encoding: String) -> [UInt8] {
      Array("<?xml version=\"1.0\" encoding=\"\(encoding)\"?><plist><dict><key>a</key><string>".utf8) + [0xE9]
        + Array("</string></dict></plist>".utf8)
    }
    #expect(Self.ours(document("ISO-8859-1"))?["a"] == "é")
    #expect(Self.ours(document("utf-8")) == nil)
    #expect(Self.ours(document("EBCDIC")) == nil)
  }

  @Test("binary property lists as Foundation writes them")
  func binary() throws {
    let long = String(repeating: "x", count: 100_000)
    for list: [String: Any] in [
      [:], ["a": "x"], ["a": "é€😀", "b": long, "é": "", "": "y"],
      ["a": 1, "b": ["a": "x"], "c": [1, 2.5, true]],
      ["a": Data(repeating: 7, count: 300), "b": Date(timeIntervalSince1970: 5)],
      Dictionary(uniqueKeysWithValues: (0..<1000).map { ("key\($0)", "value\($0)") }).merging(["a": "x"]) {
        $1
      },
    ] {
      let data = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
      let expected = list.compactMapValues { $0 as? String }.filter { ["a", "b", "é", ""].contains($0.key) }
      #expect(Self.ours(Array(data)) == expected)
    }
    let array = try PropertyListSerialization.data(fromPropertyList: ["a"], format: .binary, options: 0)
    #expect(Self.ours(Array(array)) == nil)
  }

  /// A binary property list with a table of one-byte offsets; the first object is the root.
  private static func binary(
    _ objects: [[UInt8]], count: UInt64? = nil, root: UInt64 = 0, sizes: (UInt8, UInt8) = (1, 1),
    table: UInt64? = nil
  ) -> [UInt8] {
    var (bytes, offsets) = (Array("bplist00".utf8), [UInt8]())
    for object in objects {
      offsets.append(UInt8(bytes.count))
      bytes += object
    }
    let start = UInt64(bytes.count)
    bytes += offsets + [0, 0, 0, 0, 0, 0, sizes.0, sizes.1]
    for number in [count ?? UInt64(objects.count), root, table ?? start] {
      bytes += withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
    return bytes
  }

  @Test("counts, references and offsets that exceed the file or the types are refused")
  func binaryLimits() {
    let (a, x): ([UInt8], [UInt8]) = ([0x51, 0x61], [0x51, 0x78])
    #expect(Self.ours(Self.binary([[0xD1, 1, 2], a, x])) == ["a": "x"])
    for kind: UInt8 in [0x5F, 0x6F, 0xAF, 0xCF, 0xDF, 0x4F] {
      for high: UInt8 in [0xFF, 0x80, 0x7F, 0x40, 0x3F, 0x20] {
        let huge = [kind, 0x13, high] + [UInt8](repeating: 0xFF, count: 7)
        _ = Self.ours(Self.binary([huge + [1, 1], a]))
        #expect(Self.ours(Self.binary([[0xD1, 1, 2], a, huge])) == [:])
        #expect(Self.ours(Self.binary([[0xD1, 1, 2], huge, x])) == nil)
      }
    }
    for size: UInt8 in [0x10, 0x11, 0x12, 0x14, 0x1F, 0x20, 0xFF] {
      #expect(Self.ours(Self.binary([[0xDF, size]])) == nil)
    }
    #expect(Self.ours(Self.binary([[0xD1, 1, 3], a, x])) == nil)
    #expect(Self.ours(Self.binary([[0xD1, 0, 2], a, x])) == nil)
    for number: UInt64 in [3, 255, 1 << 32, 1 << 63, .max] {
      #expect(Self.ours(Self.binary([[0xD1, 1, 2], a, x], root: number)) == nil)
      #expect(Self.ours(Self.binary([[0xD1, 1, 2], a, x], count: number == 3 ? 100 : number)) == nil)
      if number != 3 { #expect(Self.ours(Self.binary([[0xD1, 1, 2], a, x], table: number)) == nil) }
    }
    for sizes: (UInt8, UInt8) in [(0, 1), (1, 0), (9, 1), (1, 9), (255, 255), (8, 8)] {
      #expect(Self.ours(Self.binary([[0xD1, 1, 2], a, x], sizes: sizes)) == nil)
    }
    for length in 0..<80 { _ = Self.ours(Array(Self.binary([[0xD1, 1, 2], a, x]).prefix(length))) }
  }
}
