import BundleResources
import Foundation
import Posix
import TestSupport
import Testing

/// Catalogs of strings in a bundle's layers, beside tables of one language.
@Suite(.serialized) struct CatalogStringsTests {
  private static func catalog(_ texts: [String: [String: String]], source: String = "en") -> String {
    let strings = texts.mapValues { localizations in
      ["localizations": localizations.mapValues { ["stringUnit": ["state": "translated", "value": $0]] }]
    }
    let content: [String: Any] = ["sourceLanguage": source, "version": "1.0", "strings": strings]
    let data = try? JSONSerialization.data(withJSONObject: content)
    return String(decoding: data ?? Data(), as: UTF8.self)
  }

  @Test("catalogs are merged with tables of other layers key by key", arguments: BundleForm.allCases)
  func merged(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    try fixture.make(
      "Localizable.xcstrings",
      Self.catalog([
        "a": ["fr": "main fr a", "en": "main en a"], "b": ["fr": "main fr b"], "c": ["en": "main en c"],
        "Untranslated": [:], "t": ["fr": "hidden"],
      ]))
    try fixture.make("fr.lproj/Localizable.strings", "t = table;")
    try fixture.make(
      "Localizable.loctable", "{ fr = { l = \"loc fr\"; a = no; }; en = { m = \"loc en\"; }; }")
    try fixture.override("fr.lproj/Localizable.strings", "a = \"override fr a\";")
    try fixture.override("Localizable.xcstrings", Self.catalog(["c": ["fr": "override fr c"], "b": [:]]))
    try fixture.withBundle(form) { bundle in
      for (key, expected) in [
        ("a", "override fr a"), ("b", "main fr b"), ("c", "override fr c"), ("t", "table"), ("l", "loc fr"),
        ("m", "loc en"), ("Untranslated", "Untranslated"), ("none", "none"),
      ] {
        #expect(bundle.localizedString(forKey: key) == expected)
        #expect(bundle.hasLocalizedString(forKey: key) == (key != "none"))
      }
      // An untranslated key is its own text, which the default does not replace.
      #expect(bundle.localizedString(forKey: "Untranslated", value: "x") == "Untranslated")
      #expect(bundle.localizedString(forKey: "a", localization: "en") == "main en a")
      #expect(bundle.localizedString(forKey: "a", localization: "fr-CA") == "override fr a")
      #expect(bundle.localizedString(forKey: "c", localization: "de") == "c")
      #expect(!bundle.hasLocalizedString(forKey: "Untranslated", localization: "de"))
      #expect(bundle.hasLocalizedString(forKey: "Untranslated", localization: "en-GB"))
      #expect(bundle.tableErrors.isEmpty)
    }
  }

  @Test("languages that only a catalog has match as folders do", arguments: BundleForm.allCases)
  func languages(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    try fixture.make(
      "T.xcstrings",
      Self.catalog(
        [
          "a": ["no": "norsk", "de": "Deutsch"], "b": ["de": "nur deutsch"], "c": [:],
          "d": ["pt-BR": "brasil"],
        ], source: "de"))
    try fixture.make("sub/Deep.xcstrings", Self.catalog(["a": ["no": "dypt"]]))
    try fixture.make("mul.lproj/Main.xcstrings", Self.catalog(["a": ["no": "skjema"]]))
    try fixture.make("pt_BR.lproj/T.strings", "e = pasta;")
    try fixture.withBundle(form, LookupOptions(languages: ["nb"])) { bundle in
      #expect(bundle.localizedString(forKey: "a", table: "T") == "norsk")
      // The catalog's source language is the last of all.
      #expect(bundle.localizedString(forKey: "b", table: "T") == "nur deutsch")
      #expect(bundle.localizedString(forKey: "c", value: "x", table: "T") == "c")
      #expect(bundle.localizedString(forKey: "a", table: "sub/Deep") == "dypt")
      #expect(bundle.localizedString(forKey: "a", table: "Main") == "skjema")
    }
    try fixture.withBundle(form, LookupOptions(languages: ["pt-BR"])) { bundle in
      #expect(bundle.localizedString(forKey: "d", table: "T") == "brasil")
      #expect(bundle.localizedString(forKey: "e", table: "T") == "pasta")
      #expect(bundle.localizedString(forKey: "d", table: "T", localization: "pt_BR") == "brasil")
    }
  }

  @Test("plural forms and devices in catalogs and tables", arguments: BundleForm.allCases)
  func variations(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    func unit(_ text: String) -> String {
      "{\"stringUnit\":{\"state\":\"translated\",\"value\":\"\(text)\"}}"
    }
    try fixture.make(
      "Localizable.xcstrings",
      """
      {"sourceLanguage":"en","strings":{"%lld files":{"localizations":{"fr":{"variations":{"plural":{
      "one":\(unit("%lld fichier")),"other":\(unit("%lld fichiers"))}}}}},
      "Tap":{"localizations":{"fr":{"variations":{"device":{"ipad":\(unit("Touchez")),"other":\(unit("Cliquez"))}}}}}},
      "version":"1.0"}
      """)
    try fixture.make(
      "fr.lproj/Localizable.stringsdict",
      "{ d = { NSStringDeviceSpecificRuleType = { ipad = pad; other = else; }; }; }")
    let cases =
      [(nil, ["Cliquez", "else"]), (.pad, ["Touchez", "pad"])] as [(LookupOptions.Idiom?, [String])]
    for (idiom, texts) in cases {
      try fixture.withBundle(form, LookupOptions(languages: ["fr"], idiom: idiom)) { bundle in
        #expect([bundle.localizedString(forKey: "Tap"), bundle.localizedString(forKey: "d")] == texts)
        #expect(bundle.localizedString(forKey: "%lld files", arguments: [0]) == "0 fichier")
        #expect(bundle.localizedString(forKey: "%lld files", arguments: [2]) == "2 fichiers")
        #expect(bundle.localizedString(forKey: "%lld files") == "%lld fichiers")
      }
    }
  }

  @Test(
    "a malformed catalog is reported, and an edit shows at once", arguments: [BundleForm.folders, .mount])
  func live(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    try fixture.make("Localizable.xcstrings", Self.catalog(["a": ["fr": "one"]]))
    try fixture.withBundle(form) { bundle in
      for round in 0..<40 {
        try fixture.make("Localizable.xcstrings", Self.catalog(["a": ["fr": "\(round)"]]))
        #expect(bundle.localizedString(forKey: "a") == "\(round)")
      }
      try fixture.make("Localizable.xcstrings", "{\"strings\":{\n\"a\"")
      #expect(bundle.localizedString(forKey: "a") == "a")
      let error = try #require(bundle.tableErrors.first)
      #expect(error.line == 2 && error.column == 4 && error.reason == "':' is missing")
      try fixture.override("Localizable.xcstrings", Self.catalog(["a": ["fr": "new"]]))
      #expect(bundle.localizedString(forKey: "a") == "new")
      try (fixture.substitution / "Localizable.xcstrings").remove()
      try (fixture.main / "Localizable.xcstrings").remove()
      #expect(bundle.localizedString(forKey: "a") == "a" && bundle.tableErrors.isEmpty)
    }
  }

  @Test("an untranslated key of Info.plist's catalog is no value")
  func infoPlist() throws {
    let fixture = try ResourceFixture()
    try fixture.make("Info.plist", "{ CFBundleName = Name; CFBundleDisplayName = Shown; }")
    try fixture.make(
      "InfoPlist.xcstrings", Self.catalog(["CFBundleName": [:], "CFBundleDisplayName": ["fr": "Montré"]]))
    try fixture.withBundle(.folders) { bundle in
      #expect(bundle.object(forInfoDictionaryKey: "CFBundleName") as? String == "Name")
      #expect(bundle.object(forInfoDictionaryKey: "CFBundleDisplayName") as? String == "Montré")
      #expect(bundle.localizedInfoDictionary as? [String: String] == ["CFBundleDisplayName": "Montré"])
    }
  }
}
