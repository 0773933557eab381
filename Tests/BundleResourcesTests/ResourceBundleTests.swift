import BundleResources
import Foundation
import FoundationNetworking
import Posix
import TestSupport
import Testing

/// The members of Foundation's `Bundle`, asked on the same folder, and code that takes either.
@Suite(.serialized) struct ResourceBundleTests {
  private func fixture() throws -> ResourceFixture {
    let fixture = try ResourceFixture()
    try fixture.make(
      "Info.plist", "{ CFBundleIdentifier = org.example.a; CFBundleDevelopmentRegion = en; Key = v; }")
    try fixture.make("en.lproj/Localizable.strings", "a = A; empty = \"\"; same = same;")
    try fixture.make("en.lproj/InfoPlist.strings", "CFBundleName = English;")
    try fixture.make("a.txt", "a")
    try fixture.make("sub/b.txt", "b")
    try fixture.make("en.lproj/c.txt", "c")
    try fixture.make("noext", "n")
    return fixture
  }

  private func strings(_ bundle: any ResourceBundle) -> [String] {
    var answers = [
      bundle.bundleURL.path, bundle.resourceURL?.standardizedFileURL.path ?? "",
      bundle.bundleIdentifier ?? "",
      bundle.infoDictionary?["Key"] as? String ?? "", "\(bundle.localizations)",
      "\(bundle.preferredLocalizations)", bundle.localizedInfoDictionary?["CFBundleName"] as? String ?? "",
      bundle.object(forInfoDictionaryKey: "CFBundleName") as? String ?? "",
      bundle.localizedString(forKey: "a"), bundle.localizedString(forKey: "x", value: "y", table: nil),
    ]
    for key in ["a", "empty", "same", "none"] {
      answers.append("\(bundle.hasLocalizedString(forKey: key, table: nil))")
    }
    return answers
  }

  private func resources(_ bundle: any ResourceBundle) -> [String] {
    var answers: [String] = []
    for (name, ext, folder) in [
      ("a", "txt", nil), ("a.txt", nil, nil), ("b", "txt", "sub"), ("c", "txt", nil), ("none", nil, nil),
      ("noext", nil, nil),
    ] as [(String, String?, String?)] {
      let url = bundle.url(forResource: name, withExtension: ext, subdirectory: folder)
      answers.append(url?.standardizedFileURL.path ?? "")
      answers.append(bundle.path(forResource: name, ofType: ext, inDirectory: folder) ?? "")
      let data = try? bundle.data(forResource: name, withExtension: ext, subdirectory: folder)
      answers.append(data.map { String(decoding: $0, as: UTF8.self) } ?? "")
    }
    let urls = bundle.resourceURLs(withExtension: "txt", subdirectory: "sub")
    let paths = bundle.paths(forResourcesOfType: "txt", inDirectory: "sub")
    return answers + urls.map(\.standardizedFileURL.path) + paths.sorted()
  }

  @Test("code that takes either finds the same")
  func either() throws {
    let fixture = try fixture()
    let ours = try LayeredBundle(main: fixture.main.url, options: LookupOptions(languages: ["en"]))
    let theirs = try #require(Bundle(path: fixture.main.text))
    #expect(strings(ours) == strings(theirs) && resources(ours) == resources(theirs))
    for bundle in [ours, theirs] as [any ResourceBundle] {
      #expect(bundle.localizedString(forKey: "a") == "A")
      #expect(!bundle.hasLocalizedString(forKey: "none", table: nil))
      for (name, expected) in [("none", URLError.Code.fileDoesNotExist), ("sub", .fileIsDirectory)] {
        #expect(code { _ = try bundle.data(forResource: name) } == expected, "\(type(of: bundle)) \(name)")
      }
    }
  }

  @Test("look-ups in a localization find what Foundation's find")
  func oneLocalization() throws {
    let fixture = try fixture()
    try fixture.make("fr.lproj/c.txt", "c fr")
    try fixture.make("sub/fr.lproj/d.txt", "d fr")
    let ours = try LayeredBundle(main: fixture.main.url, options: LookupOptions(languages: ["en"]))
    let theirs = try #require(Bundle(path: fixture.main.text))
    #expect(ours.developmentLocalization == theirs.developmentLocalization)
    for localization in ["en", "fr", "de"] {
      for (name, ext, folder) in [
        ("a", "txt", nil), ("c", "txt", nil), ("c.txt", nil, nil), ("d", "txt", "sub"), ("none", "txt", nil),
      ] as [(String, String?, String?)] {
        let found = ours.url(
          forResource: name, withExtension: ext, subdirectory: folder, localization: localization)
        let expected = theirs.url(
          forResource: name, withExtension: ext, subdirectory: folder, localization: localization)
        #expect(
          found?.standardizedFileURL.path == expected?.standardizedFileURL.path, "\(name) in \(localization)")
        let path = ours.path(
          forResource: name, ofType: ext, inDirectory: folder, forLocalization: localization)
        #expect(
          path
            == theirs.path(forResource: name, ofType: ext, inDirectory: folder, forLocalization: localization),
          "\(name) in \(localization)")
      }
    }
    #expect(ours.url(forResource: "c", withExtension: "txt", localization: "fr") != nil)
  }

  @Test("look-ups without a bundle")
  func statics() throws {
    let fixture = try fixture()
    let url = fixture.main.url
    let (path, file) = (fixture.main.text, "a.txt")
    for (name, ext) in [("a", "txt"), (file, nil)] as [(String, String?)] {
      let found = LayeredBundle.url(forResource: name, withExtension: ext, subdirectory: nil, in: url)
      let theirs = Bundle.url(forResource: name, withExtension: ext, subdirectory: nil, in: url)
      #expect(found != nil && found?.path == theirs?.path)
      // Foundation's own on Linux ends the process.
      #expect(LayeredBundle.path(forResource: name, ofType: ext, inDirectory: path) == found?.path)
    }
    #expect(LayeredBundle.path(forResource: "none", ofType: nil, inDirectory: path) == nil)
    #expect(
      LayeredBundle.paths(forResourcesOfType: "txt", inDirectory: path).contains(path + "/a.txt"))
    let listed = LayeredBundle.urls(forResourcesWithExtension: "txt", subdirectory: "sub", in: url)
    #expect(listed.map(\.lastPathComponent) == ["b.txt"])
    try fixture.override("a.txt", "o")
    let overridden = LayeredBundle.url(
      forResource: "a", withExtension: "txt", subdirectory: nil, in: url,
      substitution: [fixture.substitution.url])
    #expect(overridden?.path == fixture.substitution.text + "/a.txt")
    let none = url.appending(path: "no")
    #expect(LayeredBundle.url(forResource: "a", withExtension: nil, subdirectory: nil, in: none) == nil)
  }

  @Test("localizations for preferred languages")
  func preferred() {
    for (localizations, languages, expected) in [
      (["de", "fr"], ["fr"], ["fr"]), (["en", "de", "fr"], ["fr-CA", "de"], ["fr", "de"]),
      (["no", "fr"], ["nb"], ["no"]), (["de", "fr"], ["ja"], ["de"]), ([], ["fr"], []),
      (["zh-Hans", "zh-Hant"], ["zh-TW"], ["zh-Hant"]),
    ] as [([String], [String], [String])] {
      let found = LayeredBundle.preferredLocalizations(from: localizations, forPreferences: languages)
      #expect(found == expected)
    }
    // Foundation on Linux does not look at the languages.
    #expect(Bundle.preferredLocalizations(from: ["de", "fr"], forPreferences: ["fr"]) == ["de"])
  }

  @Test("strings in some localizations, in their order")
  func localizations() throws {
    let fixture = try ResourceFixture()
    try fixture.make("fr.lproj/Localizable.strings", "a = fr;")
    try fixture.make("de.lproj/Localizable.strings", "a = de; b = de;")
    try fixture.make("en.lproj/Localizable.strings", "c = en;")
    try fixture.withBundle(.folders, LookupOptions(languages: ["en"])) { bundle in
      func text(_ key: String, _ localizations: [String]) -> String {
        bundle.localizedString(forKey: key, value: "-", localizations: localizations)
      }
      #expect(text("a", ["fr", "de"]) == "fr" && text("a", ["de", "fr"]) == "de")
      #expect(text("b", ["fr-CA", "de"]) == "de" && text("b", ["fr"]) == "-")
      #expect(text("c", ["de"]) == "-" && text("a", []) == "-")
    }
  }

  @Test(
    "with the language first, English of a substitution does not hide French", arguments: BundleForm.allCases)
  func languageFirst(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    try fixture.make("fr.lproj/Localizable.strings", "a = \"main fr\"; b = \"main fr\";")
    try fixture.make(
      "en.lproj/Localizable.strings", "a = \"main en\"; c = \"main en\"; d = \"main en\";")
    try fixture.make("Base.lproj/Localizable.strings", "c = \"main base\";")
    try fixture.make("Localizable.strings", "u = main;")
    try fixture.override("en.lproj/Localizable.strings", "a = \"over en\"; c = \"over en\";")
    try fixture.override("Localizable.strings", "d = unlocalized;")
    try fixture.override("fr.lproj/Localizable.strings", "b = \"over fr\";")
    for (order, expected) in [
      (LookupOptions.StringOrder.layerFirst, ["over en", "over fr", "over en", "unlocalized", "main"]),
      (.languageFirst, ["main fr", "over fr", "over en", "unlocalized", "main"]),
    ] {
      func check(_ bundle: LayeredBundle) {
        let found = ["a", "b", "c", "d", "u"].map { bundle.localizedString(forKey: $0) }
        #expect(found == expected, "\(form) \(order)")
      }
      if form == .mount {
        try fixture.withBundle(form) { _ in
          check(try LayeredBundle(mountPoint: fixture.point.url, stringOrder: order))
        }
      } else {
        try fixture.withBundle(form, LookupOptions(languages: ["fr", "en"], stringOrder: order), check)
      }
    }
  }
}
