import BundleResources
import Foundation
import TestSupport
import Testing

/// One layer alone has the strings that Foundation's Bundle finds in it.
@Suite struct FoundationStringsTests {
  @Test("the same strings as Foundation's Bundle", arguments: Seeds.chosen(2))
  func agreement(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let pieces = ["a", "b", "\\n", "\\\"", "\\U00e9", "é", "%@", ";", "=", "//", "\\\\", "'", "\n"]
    for _ in 0..<50 {
      let fixture = try ResourceFixture()
      var text = "/* comment */\n"
      for index in 0..<random.number(1...12) {
        let value = (0..<random.number(0...5)).map { _ in random.pick(pieces) }.joined()
        text += random.pick(["k\(index)", "\"k\(index)\"", "'k\(index % 3)'"])
        text += random.pick([" = \"\(value)\";\n", "=v\(index);", "; // c\n", " = /* d */ 'x' ;"])
      }
      try fixture.make("T.strings", text)
      try fixture.make("Localizable.strings", text + "\"default\" = \"x\";")
      let ours = try LayeredBundle(main: fixture.main.url)
      let theirs = try #require(Bundle(path: fixture.main.text))
      for key in (0..<14).map({ "k\($0)" }) + ["default", "none"] {
        for (value, table) in [(nil, "T"), ("other", "T"), ("", nil), (nil, nil)] as [(String?, String?)] {
          #expect(
            ours.localizedString(forKey: key, value: value, table: table)
              == theirs.localizedString(forKey: key, value: value, table: table), "\(key) in \(text)")
        }
      }
    }
  }

  @Test("the same paths and dictionaries", arguments: ["", "Resources/", "Contents/Resources/"])
  func members(resources: String) throws {
    let fixture = try ResourceFixture()
    let plist = ["": "", "Resources/": "Resources/", "Contents/Resources/": "Contents/"][resources] ?? ""
    try fixture.make(
      ByteString(plist + "Info.plist"),
      "{ CFBundleIdentifier = org.example.a; CFBundleName = Name; CFBundleDevelopmentRegion = en; }")
    try fixture.make(ByteString(resources + "a.txt"), "a")
    try fixture.make(
      ByteString(resources + "en.lproj/InfoPlist.strings"), "CFBundleName = \"English name\"; Other = x;")
    let ours = try LayeredBundle(main: fixture.main.url, options: LookupOptions(languages: ["en"]))
    let theirs = try #require(Bundle(path: fixture.main.text))
    #expect(ours.bundleURL == theirs.bundleURL && ours.bundlePath == theirs.bundlePath)
    #expect(ours.resourcePath == theirs.resourcePath)
    #expect(ours.resourceURL?.standardizedFileURL.path == theirs.resourceURL?.standardizedFileURL.path)
    #expect(ours.bundleIdentifier == theirs.bundleIdentifier && ours.bundleIdentifier == "org.example.a")
    #expect(
      ours.localizedInfoDictionary as? [String: String] == ["CFBundleName": "English name", "Other": "x"])
    #expect(
      ours.localizedInfoDictionary as? [String: String] == theirs.localizedInfoDictionary as? [String: String]
    )
    // Where there is a table, Foundation on Linux looks no further.
    for key in ["CFBundleName", "Other", "None"] {
      let (own, other) = (ours.object(forInfoDictionaryKey: key), theirs.object(forInfoDictionaryKey: key))
      #expect(own as? String == other as? String, "\(key)")
    }
    #expect(ours.preferredLocalizations == theirs.preferredLocalizations)
    #expect(ours.localizations == theirs.localizations.sorted())
    #expect(ours.description == "LayeredBundle <\(fixture.main.text)>")
  }

  @Test("paths of a mount and of an archive", .timeLimit(.minutes(1)))
  func otherForms() throws {
    let fixture = try ResourceFixture()
    try fixture.make("Resources/a.txt", "a")
    try fixture.withBundle(.mount) { bundle in
      #expect(bundle.bundlePath == fixture.point.text)
      #expect(bundle.resourcePath == fixture.point.text + "/Resources")
    }
    try fixture.withBundle(.archives) { bundle in
      #expect(bundle.bundlePath == fixture.main.text + ".zip" && bundle.resourceURL == nil)
    }
    #expect(try LayeredBundle(main: fixture.main.url).localizedInfoDictionary == nil)
  }
}
