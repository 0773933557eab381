import BundleResources
import Foundation
import Posix
import TestSupport
import Testing

/// ProxyBundle's `localizedStringForKey:value:table:`: the substitution's tables, then the main bundle's.
@Suite(.serialized) struct LocalizedStringTests {
  private func fixture() throws -> ResourceFixture {
    let fixture = try ResourceFixture()
    try fixture.make(
      "fr.lproj/Localizable.strings", "\"a\" = \"main fr a\"; \"b\" = \"main fr b\"; \"c\" = \"main fr c\";")
    try fixture.make("en.lproj/Localizable.strings", "\"b\" = \"main en b\"; \"d\" = \"main en d\";")
    try fixture.make("Base.lproj/Localizable.strings", "e = \"main base e\";")
    try fixture.make("de.lproj/Localizable.strings", "a = \"main de a\"; f = \"main de f\";")
    try fixture.make("Other.strings", "a = other;")
    try fixture.make("sub/Deep.strings", "a = unlocalized;")
    try fixture.make("fr.lproj/sub/Deep.strings", "a = deep; b = \"deep b\";")
    try fixture.override("fr.lproj/Localizable.strings", "b = \"substitution fr b\";")
    try fixture.override("en.lproj/Localizable.strings", "c = \"substitution en c\"; g = \"\";")
    return fixture
  }

  @Test("localizedStringForKey", arguments: BundleForm.allCases)
  func localizedStringForKey(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.withBundle(form) { bundle in
      // A key that the substitution lacks comes from the main bundle; a layer is searched whole before the next.
      for (key, expected) in [
        ("a", "main fr a"), ("b", "substitution fr b"), ("c", "substitution en c"), ("d", "main en d"),
        ("e", "main base e"), ("f", "f"), ("g", ""), ("nothing", "nothing"), ("", ""),
      ] {
        #expect(bundle.localizedString(forKey: key) == expected)
        #expect(bundle.localizedString(forKey: key, value: "", table: "") == expected)
      }
      #expect(bundle.localizedString(forKey: "nothing", value: "default") == "default")
      #expect(bundle.localizedString(forKey: "a", value: "default") == "main fr a")
      #expect(bundle.localizedString(forKey: "a", table: "Other") == "other")
      #expect(bundle.localizedString(forKey: "a", table: "sub/Deep") == "unlocalized")
      #expect(bundle.localizedString(forKey: "b", table: "sub/Deep") == "deep b")
      #expect(bundle.localizedString(forKey: "a", table: "None") == "a")
      #expect(bundle.localizedString(forKey: "a", table: "../Other") == "a")
      #expect(bundle.localizedString(forKey: "f", localization: "de") == "main de f")
      #expect(bundle.localizedString(forKey: "b", localization: "de") == "b")
      #expect(bundle.localizedString(forKey: "b", localization: "fr") == "substitution fr b")
      #expect(bundle.tableErrors.isEmpty)
    }
  }

  @Test(
    "a key that no preferred language has comes from the development region", arguments: BundleForm.allCases)
  func developmentRegion(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    try fixture.make("fr.lproj/Localizable.strings", "a = \"fr a\";")
    try fixture.make("en.lproj/Localizable.strings", "a = \"en a\"; b = \"en b\";")
    try fixture.make("de.lproj/Localizable.strings", "a = \"de a\"; b = \"de b\";")
    for (languages, a, b) in [(["fr"], "fr a", "en b"), (["ja"], "en a", "en b"), ([], "en a", "en b")] {
      try fixture.withBundle(form, LookupOptions(languages: languages.isEmpty ? ["C"] : languages)) {
        bundle in
        #expect(bundle.localizedString(forKey: "a") == a && bundle.localizedString(forKey: "b") == b)
        #expect(bundle.localizedString(forKey: "a", localization: "fr-CA") == "fr a")
        #expect(bundle.localizedString(forKey: "b", localization: "fr-CA") == "b")
      }
    }
    try fixture.override("Info.plist", "{ CFBundleDevelopmentRegion = de; }")
    try fixture.make("Info.plist", "{ CFBundleDevelopmentRegion = de; }")
    try fixture.withBundle(form, LookupOptions(languages: ["fr"])) { bundle in
      #expect(bundle.localizedString(forKey: "a") == "fr a" && bundle.localizedString(forKey: "b") == "de b")
    }
  }

  @Test("languages match by more than their prefixes", arguments: BundleForm.allCases)
  func languages(form: BundleForm) throws {
    for (language, localization) in [
      ("nb", "no"), ("pt-BR", "pt-PT"), ("en-AU", "en-GB"), ("zh-Hant-TW", "zh_TW"), ("iw", "he"),
      ("es-MX", "es-419"),
    ] {
      let fixture = try ResourceFixture()
      try fixture.make("fr.lproj/Localizable.strings", "a = fr;")
      try fixture.make(ByteString("\(localization).lproj/Localizable.strings"), "a = found;")
      try fixture.make("Info.plist", "{ CFBundleDevelopmentRegion = fr; }")
      try fixture.withBundle(form, LookupOptions(languages: [language])) { bundle in
        #expect(bundle.localizedString(forKey: "a") == "found", "\(language)")
        #expect(bundle.preferredLocalizations == [localization, "fr"])
      }
    }
  }

  @Test(
    "a table with a syntax error serves what precedes it, and the layers below the rest",
    arguments: BundleForm.allCases)
  func syntaxErrors(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.override("fr.lproj/Localizable.strings", "a = new;\nb = \"not closed;\nc = lost;")
    try fixture.withBundle(form) { bundle in
      #expect(bundle.localizedString(forKey: "a") == "new")
      #expect(bundle.localizedString(forKey: "b") == "main fr b")
      let error = try #require(bundle.tableErrors.first)
      #expect(bundle.tableErrors.count == 1 && error.line == 2 && error.column == 5)
      #expect(
        error.path.hasPrefix(fixture.substitution.text)
          && error.path.hasSuffix("/fr.lproj/Localizable.strings"))
      #expect(error.description == "\(error.path):2:5: a quoted string is not closed")
      #expect("\(error.localizedDescription)" == error.description)
    }
  }

  @Test("property lists and texts in UTF-16 are tables, too", arguments: BundleForm.allCases)
  func formats(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    let list = ["x": "xml", "y": "é"]
    for (name, format) in [("X", PropertyListSerialization.PropertyListFormat.xml), ("B", .binary)] {
      let data = try PropertyListSerialization.data(fromPropertyList: list, format: format, options: 0)
      try (fixture.main / ByteString("\(name).strings")).write([UInt8](data))
    }
    let wide = try #require("\"x\" = \"wide é\";".data(using: .utf16))
    try (fixture.main / "W.strings").write([UInt8](wide))
    try fixture.override("X.strings", "y = text;")
    try fixture.withBundle(form) { bundle in
      #expect(bundle.localizedString(forKey: "x", table: "X") == "xml")
      #expect(bundle.localizedString(forKey: "y", table: "X") == "text")
      #expect(bundle.localizedString(forKey: "y", table: "B") == "é")
      #expect(bundle.localizedString(forKey: "x", table: "W") == "wide é")
    }
  }

  private static func plurals(_ one: String, _ other: String) -> String {
    """
    <plist version="1.0"><dict><key>%d files</key><dict>
    <key>NSStringLocalizedFormatKey</key><string>%#@n@</string><key>n</key><dict>
    <key>NSStringFormatSpecTypeKey</key><string>NSStringPluralRuleType</string>
    <key>NSStringFormatValueTypeKey</key><string>d</string>
    <key>one</key><string>\(one)</string><key>other</key><string>\(other)</string></dict></dict></dict></plist>
    """
  }

  @Test("plural forms follow the language of the table", arguments: BundleForm.allCases)
  func plurals(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    try fixture.make("fr.lproj/Localizable.stringsdict", Self.plurals("%d fichier", "%d fichiers"))
    try fixture.make("en.lproj/Localizable.stringsdict", Self.plurals("%d file", "%d files"))
    try fixture.make("fr.lproj/Localizable.strings", "\"%d files\" = \"plain\"; \"hello %@\" = \"salut %@\";")
    try fixture.withBundle(form) { bundle in
      func text(_ number: Int, _ localization: String? = nil) -> String {
        bundle.localizedString(forKey: "%d files", localization: localization, arguments: [number])
      }
      #expect([0, 1, 2].map { text($0) } == ["0 fichier", "1 fichier", "2 fichiers"])
      #expect([0, 1, 2].map { text($0, "en") } == ["0 files", "1 file", "2 files"])
      #expect(bundle.localizedString(forKey: "%d files") == "plain")
      #expect(bundle.localizedString(forKey: "%d files", localization: "en") == "%#@n@")
      #expect(bundle.localizedString(forKey: "hello %@", arguments: ["é"]) == "salut é")
      #expect(bundle.localizedString(forKey: "%d of %.1f", arguments: [UInt8(1), Float(2)]) == "1 of 2.0")
      #expect(
        bundle.localizedString(forKey: "k", value: "%@!", arguments: [Int?.none.debugDescription]) == "nil!")
    }
  }

  @Test("an edit, a new table and a removed one show at once", arguments: [BundleForm.folders, .mount])
  func live(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.withBundle(form) { bundle in
      for round in 0..<20 {
        try (fixture.substitution / "fr.lproj/Localizable.strings").write("a = \(round);")
        #expect(bundle.localizedString(forKey: "a") == "\(round)")
      }
      try fixture.override("New.strings", "a = new;")
      #expect(bundle.localizedString(forKey: "a", table: "New") == "new")
      try fixture.override("New.strings", "a")
      #expect(bundle.localizedString(forKey: "a", table: "New") == "a" && bundle.tableErrors.count == 1)
      try (fixture.substitution / "New.strings").remove()
      #expect(bundle.tableErrors.isEmpty)
      try (fixture.substitution / "fr.lproj/Localizable.strings").remove()
      #expect(bundle.localizedString(forKey: "a") == "main fr a")
      // A whiteout hides the main bundle's table.
      try (fixture.substitution / "fr.lproj/.wh.Localizable.strings").write("")
      #expect(bundle.localizedString(forKey: "a") == "a")
    }
  }

  @Test("many tasks may ask at once")
  func concurrent() async throws {
    let fixture = try fixture()
    let bundle = try LayeredBundle(
      main: fixture.main.url, substitution: [fixture.substitution.url],
      options: LookupOptions(languages: ["fr", "en"]))
    await withTaskGroup(of: String.self) { group in
      for _ in 0..<200 { group.addTask { bundle.localizedString(forKey: "b") } }
      for await string in group { #expect(string == "substitution fr b") }
    }
  }
}
