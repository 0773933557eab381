import Foundation
import Posix
import TestSupport
import Testing

@testable import Bundles

@Suite struct InfoPlistTests {
  private static var keys: [String: Any] {
    [
      "CFBundleIdentifier": "org.example.App", "CFBundleDevelopmentRegion": "fr",
      "CFBundleDocumentTypes": [["CFBundleTypeName": "Text & <more>", "LSRank": 3, "On": true]],
      "Data": Data([0, 1, 2]), "Date": Date(timeIntervalSince1970: 0),
    ]
  }
  private static let expected = InfoPlist(
    identifier: "org.example.App", developmentRegion: "fr")

  private static func written(_ format: PropertyListSerialization.PropertyListFormat) throws -> [UInt8] {
    Array(try PropertyListSerialization.data(fromPropertyList: keys, format: format, options: 0))
  }

  private static let openStep = """
    // OpenStep format.
    { CFBundleIdentifier = "org.example.App"; /* a comment */ CFBundleDevelopmentRegion = fr;
      List = (a, "b c", <0fbd 77>, { x = y; }); }
    """

  @Test("XML, binary and OpenStep")
  func formats() throws {
    #expect(InfoPlist(propertyList: try Self.written(.xml)) == Self.expected)
    #expect(InfoPlist(propertyList: try Self.written(.binary)) == Self.expected)
    #expect(InfoPlist(propertyList: Array(Self.openStep.utf8)) == Self.expected)
    let strings = "CFBundleIdentifier = \"org.example.App\"; CFBundleDevelopmentRegion = fr;"
    #expect(InfoPlist(propertyList: Array(strings.utf8)) == Self.expected)
  }

  @Test("a value that is not a string counts as absent")
  func kinds() {
    let text = "{ CFBundleIdentifier = (a); CFBundleDevelopmentRegion = fr; }"
    #expect(InfoPlist(propertyList: Array(text.utf8)) == InfoPlist(developmentRegion: "fr"))
    #expect(InfoPlist(propertyList: Array("{ a = b; }".utf8)) == InfoPlist())
    #expect(InfoPlist(propertyList: Array("( a, b )".utf8)) == nil)
  }

  @Test("malformed input never traps", arguments: [UInt64](1...3))
  func malformed(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for whole in [try Self.written(.xml), try Self.written(.binary), Array(Self.openStep.utf8)] {
      for length in stride(from: 0, to: whole.count, by: 7) {
        _ = InfoPlist(propertyList: Array(whole.prefix(length)))
      }
      for _ in 0..<300 {
        var damaged = whole
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(
            in: 0...255, using: &random)
        }
        _ = InfoPlist(propertyList: damaged)
      }
    }
    for text in ["", "\0", "<", "<?xml", "bplist00", "bplist", "{", "<plist", "<plist><dict>", "hello"] {
      #expect(InfoPlist(propertyList: Array(text.utf8)) == nil)
    }
  }

  @Test(
    "deep nesting is rejected in all formats",
    arguments: [
      ("<plist>", "<array>", "</array>"), ("<plist>", "<dict><key>a</key>", "</dict>"),
      ("<plist>", "<array a=\"/>\">", "</array>"), ("<plist>", "<array><!-- </array> -->", ""),
      ("<plist>", "<array><? </array> ?>", ""), ("<plist>", "<array\n>", "</array>"),
      ("<!DOCTYPE x [</array></array>]><plist>", "<array>", "</array>"),
      ("", "(", ")"), ("", "{a=", ";}"), ("<plist>", "<array><![CDATA[</array>]]>", ""),
    ])
  func nesting(start: String, opening: String, closing: String) {
    let text = start + String(repeating: opening, count: 10_000) + String(repeating: closing, count: 10_000)
    #expect(InfoPlist(propertyList: Array(text.utf8)) == nil)
    var wide: [UInt8] = []
    for byte in text.utf8 { wide += [byte, 0] }
    #expect(InfoPlist(propertyList: [0xFF, 0xFE] + wide) == nil)
  }

  @Test("many sibling collections are accepted")
  func breadth() throws {
    var keys = Self.keys
    keys["Empty"] = Array(repeating: [String](), count: 500)
    keys["Full"] = Array(repeating: [["a": ["b"]]], count: 500)
    let xml = try PropertyListSerialization.data(fromPropertyList: keys, format: .xml, options: 0)
    #expect(InfoPlist(propertyList: Array(xml)) == Self.expected)
  }

  @Test("nesting within the limit is accepted on a small thread stack", arguments: [126, 127])
  func deepest(levels: Int) {
    let nested = String(repeating: "<array>", count: levels) + String(repeating: "</array>", count: levels)
    let text =
      "<plist><dict><key>a</key>\(nested)<key>CFBundleIdentifier</key><string>x</string></dict></plist>"
    #expect(InfoPlist(propertyList: Array(text.utf8))?.identifier == "x")
    let deeper = text.replacingOccurrences(of: nested, with: "<array>\(nested)<array></array></array>")
    #expect((InfoPlist(propertyList: Array(deeper.utf8)) == nil) == (levels == 127))
  }

  private static func plist(_ identifier: String) -> String { "{ CFBundleIdentifier = \(identifier); }" }

  @Test(
    "the path of Info.plist depends on the layout",
    arguments: [
      (["Contents/Resources/", "Contents/Info.plist", "Info.plist", "Resources/Info.plist"], "Contents"),
      (["Contents/Resources/", "Info.plist"], "flat"), (["Contents/Info.plist"], "Contents"),
      (["Resources/Info.plist", "Info.plist", "Contents/Info.plist"], "Resources"),
      (["Resources/", "Info.plist", "Contents/Info.plist"], "flat"), (["Info.plist"], "flat"),
      (["Info.plist", "Contents/Info.plist"], "flat"), (["Resources/"], nil), ([], nil),
      (["Info.plist/"], nil),
    ] as [([String], String?)])
  func paths(paths: [String], expected: String?) throws {
    let fixture = try LookupFixture(paths.map { "1 " + $0 })
    for path in paths where path.hasSuffix("t") {
      let layout = path.contains("/") ? String(path.prefix { $0 != "/" }) : "flat"
      try (fixture.path(1) / ByteString(path)).write(Self.plist(layout))
    }
    #expect(try InfoPlist(of: fixture.stack).identifier == expected)
  }

  @Test("a substitution's file wins, even if it is malformed; links inside the mount are followed")
  func merged() throws {
    let fixture = try LookupFixture(["1 Versions/A/Resources/", "1 Resources -> Versions/A/Resources"])
    let own = try fixture.path(1) / "Versions/A/Resources/Info.plist"
    try own.write(Self.plist("main"))
    let lookup = ResourceLookup(stack: fixture.stack)
    #expect(try lookup.infoPlist().identifier == "main")
    try own.write(Self.plist("anew"))
    #expect(try lookup.infoPlist().identifier == "anew")
    try (fixture.path(0) / "Versions/A/Resources").makeDirectories()
    let other = try fixture.path(0) / "Versions/A/Resources/Info.plist"
    try other.write(Self.plist("other"))
    #expect(try lookup.infoPlist().identifier == "other")
    try other.write("{ damaged")
    #expect(try lookup.infoPlist() == InfoPlist())
    try other.remove()
    try other.makeLink(to: "/etc/hostname")
    #expect(try lookup.infoPlist() == InfoPlist())
  }

  @Test("a cached Info.plist is read again after a change")
  func cached() throws {
    let fixture = try LookupFixture([])
    let plist = try fixture.path(1) / "Info.plist"
    let lookup = ResourceLookup(stack: fixture.stack)
    for name in ["one", "two", "six"] {
      try plist.replace(Self.plist(name))
      try plist.setModified(TimeSpec(seconds: 1_000_000, nanoseconds: 0))
      for _ in 0..<3 { #expect(try lookup.infoPlist().identifier == name) }
    }
  }

  @Test("files that are too large or not regular count as absent")
  func refused() throws {
    let fixture = try LookupFixture([])
    let plist = try fixture.path(1) / "Info.plist"
    try plist.write(Self.plist("x") + String(repeating: " ", count: 4 << 20))
    #expect(try InfoPlist(of: fixture.stack) == InfoPlist())
    try plist.remove()
    try plist.makeNode(mode: FileKind.fifo.rawValue | 0o600)
    #expect(try InfoPlist(of: fixture.stack) == InfoPlist())
  }
}
