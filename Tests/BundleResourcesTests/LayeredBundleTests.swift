import BundleResources
import Foundation
import FoundationNetworking
import Posix
import TestSupport
import Testing

/// ProxyBundle's other methods, over folders, archives and a mount.
@Suite(.serialized) struct LayeredBundleTests {
  private func fixture() throws -> ResourceFixture {
    let fixture = try ResourceFixture()
    try fixture.makeOverridden()
    try fixture.make("c.txt", "main c")
    try fixture.override("d.txt", "substitution d")
    try fixture.make("fr.lproj/sub/e.txt", "main fr e")
    return fixture
  }

  /// What ``ResourceFixture/summary(_:)`` has for a resource in a form.
  private static func expected(_ form: BundleForm, _ layer: String, _ path: String) -> String {
    switch form {
    case .folders: return "\(layer) \(path)"
    case .mount: return path
    case .archives: return "archive " + path
    }
  }

  @Test("pathForResource", arguments: BundleForm.allCases)
  func pathForResource(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.withBundle(form) { bundle in
      for (name, type, folder, localization, layer, path) in [
        ("a", "txt", nil, nil, "substitution", "a.txt"), ("c.txt", nil, nil, nil, "main", "c.txt"),
        ("d", "txt", nil, nil, "substitution", "d.txt"),
        ("b", "txt", nil, nil, "substitution", "en.lproj/b.txt"),
        ("b", "txt", nil, "fr", "main", "fr.lproj/b.txt"), ("b", "txt", nil, "de", "main", "de.lproj/b.txt"),
        ("c d", "txt", "sub", nil, "main", "sub/c d.txt"),
        ("sub/c d", "txt", nil, nil, "main", "sub/c d.txt"),
        ("e", "txt", "sub", nil, "main", "fr.lproj/sub/e.txt"),
      ] as [(String, String?, String?, String?, String, String)] {
        let url = bundle.url(
          forResource: name, withExtension: type, subdirectory: folder, localization: localization)
        #expect(fixture.summary(url) == Self.expected(form, layer, path), "\(name)")
        let found = bundle.path(
          forResource: name, ofType: type, inDirectory: folder, forLocalization: localization)
        #expect(found == (form == .archives ? nil : url?.path))
        let data = try bundle.data(
          forResource: name, withExtension: type, subdirectory: folder, localization: localization)
        let content =
          form == .archives
          ? try ResourceSource(bundle: bundle).load(try #require(url)).data
          : try Data(contentsOf: try #require(url))
        #expect(data == content)
        #expect(String(decoding: data, as: UTF8.self).hasPrefix(layer))
      }
      for (name, type, localization) in [
        ("x", "txt", nil), ("a", "png", nil), ("b", "txt", "it"), ("..", nil, nil), ("../main/a", "txt", nil),
      ] as [(String, String?, String?)] {
        #expect(bundle.url(forResource: name, withExtension: type, localization: localization) == nil)
      }
    }
  }

  @Test("pathsForResourcesOfType", arguments: BundleForm.allCases)
  func pathsForResourcesOfType(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.withBundle(form) { bundle in
      func listed(_ type: String?, _ folder: String? = nil, _ localization: String? = nil) -> [String?] {
        bundle.urls(forResourcesWithExtension: type, subdirectory: folder, localization: localization)
          .map(fixture.summary)
      }
      func expected(_ entries: (String, String)...) -> [String?] {
        entries.map { Self.expected(form, $0.0, $0.1) }
      }
      // Merged, each once.
      let shared = [("substitution", "a.txt"), ("main", "c.txt"), ("substitution", "d.txt")]
      #expect(
        listed("txt")
          == expected(
            shared[0], shared[1], shared[2], ("substitution", "en.lproj/b.txt"), ("main", "fr.lproj/b.txt")))
      #expect(
        listed("txt", nil, "de") == expected(shared[0], shared[1], shared[2], ("main", "de.lproj/b.txt")))
      #expect(listed("txt", "sub") == expected(("main", "fr.lproj/sub/e.txt"), ("main", "sub/c d.txt")))
      #expect(listed("png").isEmpty && listed("txt", "none").isEmpty && listed("txt", "..").isEmpty)
      #expect(
        bundle.url(forResource: nil, withExtension: "txt")
          == bundle.urls(forResourcesWithExtension: "txt").first)
      let paths = bundle.paths(forResourcesOfType: "txt")
      #expect(paths.count == (form == .archives ? 0 : 5))
    }
  }

  @Test("imageNamed", arguments: BundleForm.allCases)
  func imageNamed(form: BundleForm) throws {
    let fixture = try ResourceFixture()
    for name in ["logo.png", "logo@2x.png", "logo@2x~ipad.png", "icon.jpg"] as [ByteString] {
      try fixture.make(name, name.text)
    }
    try fixture.override("logo.png", "substitution logo")
    let expected: [(LookupOptions, String, String)] = [
      (LookupOptions(languages: ["en"]), "substitution", "logo.png"),
      (LookupOptions(languages: ["en"], scale: 2), "main", "logo@2x.png"),
      (LookupOptions(languages: ["en"], scale: 2, idiom: .pad), "main", "logo@2x~ipad.png"),
      (LookupOptions(languages: ["en"], scale: 1), "substitution", "logo.png"),
    ]
    for (options, layer, path) in expected {
      try fixture.withBundle(form, options) { bundle in
        #expect(fixture.summary(bundle.urlForImageResource("logo")) == Self.expected(form, layer, path))
        #expect(bundle.urlForImageResource("logo.png") == bundle.urlForImageResource("logo"))
        #expect(bundle.urlForImageResource("icon.jpg") != nil && bundle.urlForImageResource("none") == nil)
      }
    }
  }

  @Test("invalidateCaches is not needed after a change", arguments: [BundleForm.folders, .mount])
  func invalidateCaches(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.withBundle(form) { bundle in
      #expect(bundle.url(forResource: "new", withExtension: "txt") == nil)
      try fixture.override("new.txt", "new")
      #expect(try bundle.data(forResource: "new.txt") == Data("new".utf8))
      try (fixture.substitution / "a.txt").remove()
      #expect(try bundle.data(forResource: "a.txt") == Data("main".utf8))
      try (fixture.substitution / ".wh.a.txt").write("")
      #expect(bundle.url(forResource: "a.txt") == nil)
      bundle.invalidateCaches()
      #expect(bundle.url(forResource: "a.txt") == nil && bundle.url(forResource: "new.txt") != nil)
    }
  }

  @Test("localizations", arguments: BundleForm.allCases)
  func localizations(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.override("pt_BR.lproj/x.txt", "x")
    try fixture.make("Base.lproj/x.txt", "x")
    try fixture.make("Info.plist", "{ CFBundleDevelopmentRegion = de; }")
    try fixture.withBundle(form, LookupOptions(languages: ["pt-BR", "it", "fr", "de"])) { bundle in
      #expect(bundle.localizations == ["Base", "de", "en", "fr", "pt_BR"])
      #expect(bundle.preferredLocalizations == ["pt_BR", "fr", "de"])
      #expect(bundle.developmentLocalization == "de")
    }
  }

  @Test("infoDictionary is merged, and objectForInfoDictionaryKey localized", arguments: BundleForm.allCases)
  func infoDictionary(form: BundleForm) throws {
    let fixture = try fixture()
    let main: [String: Any] = [
      "CFBundleIdentifier": "org.main", "CFBundleName": "Main", "Count": 3, "Ratio": 1.5, "Flag": true,
      "List": ["a", ["b": 1]], "Bytes": Data([1, 2]), "Day": Date(timeIntervalSinceReferenceDate: 86_400),
    ]
    for (path, format) in [
      ("Info.plist", PropertyListSerialization.PropertyListFormat.xml), ("binary", .binary),
    ] {
      let data = try PropertyListSerialization.data(fromPropertyList: main, format: format, options: 0)
      try (fixture.main / ByteString(path)).write([UInt8](data))
    }
    try fixture.override("Info.plist", "{ CFBundleName = Substitution; Extra = x; }")
    try fixture.make("fr.lproj/InfoPlist.strings", "CFBundleDisplayName = Nom;")
    try fixture.withBundle(form) { bundle in
      let merged = try #require(bundle.infoDictionary)
      #expect(merged.count == 9 && merged["CFBundleName"] as? String == "Substitution")
      #expect(merged["Extra"] as? String == "x" && merged["Count"] as? Int == 3)
      #expect(merged["Ratio"] as? Double == 1.5 && merged["Flag"] as? Bool == true)
      #expect((merged["List"] as? [Any])?.count == 2 && merged["Bytes"] as? Data == Data([1, 2]))
      #expect(merged["Day"] as? Date == Date(timeIntervalSinceReferenceDate: 86_400))
      #expect(bundle.bundleIdentifier == "org.main")
      #expect(bundle.object(forInfoDictionaryKey: "CFBundleDisplayName") as? String == "Nom")
      #expect(bundle.object(forInfoDictionaryKey: "CFBundleName") as? String == "Substitution")
      #expect(bundle.object(forInfoDictionaryKey: "Nothing") == nil)
    }
    try fixture.withBundle(.folders) { bundle in
      try fixture.override("Info.plist", "{ CFBundleName = Again; ")
      #expect(bundle.infoDictionary?["CFBundleName"] as? String == "Main")
    }
  }

  @Test("dataForResource names the reason of a failure", arguments: BundleForm.allCases)
  func dataForResource(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.withBundle(form) { bundle in
      #expect(code { _ = try bundle.data(forResource: "none") } == .fileDoesNotExist)
      #expect(code { _ = try bundle.data(forResource: "sub") } == .fileIsDirectory)
      #expect(code { _ = try bundle.data(forResource: "../a.txt") } == .badURL)
      #expect(code { _ = try bundle.data(forResource: "a\0b") } == .badURL)
      #expect(code { _ = try bundle.data(forResource: "a.txt", localization: "") } == .badURL)
      // It names the bundle and what was asked for, and no file that there is not.
      let error = try #require(throws: URLError.self) {
        try bundle.data(forResource: "none", withExtension: "txt", subdirectory: "sub")
      }
      #expect(error.failingURL == bundle.bundleURL)
      let path = String(bundle.bundleURL.path(percentEncoded: false).dropLast())
      #expect(error.localizedDescription == "\(path): 'sub/none.txt': there is no such resource")
    }
  }

  @Test("extensions with a dot, and no name at all, as in Foundation", arguments: BundleForm.allCases)
  func names(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.make(".hidden", "main")
    let theirs = try #require(Bundle(path: fixture.main.text))
    try fixture.withBundle(form, LookupOptions(languages: ["en"])) { bundle in
      for (name, ext) in [
        ("c", ".txt"), ("c", "..txt"), ("c.", "txt"), ("c.txt", ""), (nil, nil), ("", ""), (nil, ""),
        ("", nil),
        ("c.txt", "txt"), (".hidden", nil),
      ] as [(String?, String?)] {
        let expected = theirs.url(forResource: name, withExtension: ext)
        let found = bundle.url(forResource: name, withExtension: ext)
        #expect(found?.lastPathComponent == expected?.lastPathComponent, "\(name ?? "nil") \(ext ?? "nil")")
      }
      #expect(
        bundle.urls(forResourcesWithExtension: ".txt") == bundle.urls(forResourcesWithExtension: "txt"))
    }
  }

  @Test("layers that cannot be opened, and folders in archives")
  func layers() throws {
    let fixture = try fixture()
    try (fixture.folder / "no.zip").write("text")
    try (fixture.folder / "app.ipa").write(
      ZipBuilder([.init("Payload/App.app/Contents/Resources/x.txt", "inside"), .init("y", "outside")]).bytes)
    let expected: [(String, URLError.Code?)] = [
      ("none", .fileDoesNotExist), ("no.zip", .cannotOpenFile), ("app.ipa", nil),
      ("app.ipa!/none", .fileDoesNotExist),
      ("app.ipa!/y", .cannotOpenFile),
    ]
    for (name, reason) in expected {
      let url = URL(fileURLWithPath: (fixture.folder / ByteString(name)).text)
      #expect(code { _ = try LayeredBundle(main: url) } == reason, "\(name)")
    }
    let inner = URL(fileURLWithPath: (fixture.folder / "app.ipa!/Payload/App.app").text)
    let bundle = try LayeredBundle(main: inner, substitution: [fixture.substitution.url])
    #expect(try bundle.data(forResource: "x.txt") == Data("inside".utf8))
    #expect(fixture.summary(bundle.url(forResource: "x.txt")) == "archive x.txt")
    let error = try #require(throws: URLError.self) { try LayeredBundle(mountPoint: fixture.point.url) }
    #expect(
      error.code == .resourceUnavailable
        && error.localizedDescription.contains("no bundlefs is mounted there"))
  }

  @Test("a mount's layers change, and the mount goes", .timeLimit(.minutes(1)))
  func mountChanges() throws {
    let fixture = try fixture()
    var setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [fixture.substitution])
    setup.options = ["languages=fr:en"]
    var kept: LayeredBundle?
    try withMount(setup) { _ in
      let bundle = try LayeredBundle(mountPoint: fixture.point.url)
      #expect(try bundle.data(forResource: "a.txt") == Data("substitution".utf8))
      kept = bundle
    }
    let bundle = try #require(kept)
    bundle.invalidateCaches()
    #expect(bundle.url(forResource: "a.txt") == nil && bundle.localizedString(forKey: "a") == "a")
    #expect(code { _ = try bundle.data(forResource: "a.txt") } == .resourceUnavailable)
    setup.substitutions = []
    try withMount(setup) { _ in
      bundle.invalidateCaches()
      let data = try bundle.data(forResource: "a.txt")
      #expect(data == Data("main".utf8))
    }
  }
}
