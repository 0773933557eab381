import Posix
import TestSupport
import Testing

@testable import Bundles

@Suite struct LookupTests {
  @Test("all folders of a layer are searched before the next layer", arguments: layersCases)
  func layers(question: Case) throws { #expect(try question.result() == question.expected) }

  static let layersCases = [
    Case(["1 a"], "a", "1 a"),
    Case(["0 a"], "a", "0 a"),
    Case(["0 a", "1 a"], "a", "0 a"),
    Case(["0 a", "1 a", "2 a"], "a", "0 a"),
    Case(["1 a", "2 a"], "a", "1 a"),
    Case(["2 a"], "a", "2 a"),
    Case(["1 b"], "a", nil),
    Case(["1 a"], "A", nil),
    Case(["0 b", "1 a"], "a", "1 a"),
    // A localized override wins against an unlocalized original, and the other way round.
    Case(["0 fr.lproj/a", "1 a"], "a", "0 fr.lproj/a fr", languages: "fr"),
    Case(["0 a", "1 fr.lproj/a"], "a", "0 a", languages: "fr"),
    Case(["0 fr.lproj/a", "1 fr.lproj/a"], "a", "0 fr.lproj/a fr", languages: "fr"),
    Case(["0 fr.lproj/b", "1 fr.lproj/a"], "a", "1 fr.lproj/a fr", languages: "fr"),
    Case(["0 Base.lproj/a", "1 fr.lproj/a"], "a", "0 Base.lproj/a Base", languages: "fr"),
    Case(["0 en.lproj/a", "1 fr.lproj/a"], "a", "0 en.lproj/a en", languages: "fr:en"),
    Case(["0 de.lproj/a", "1 a"], "a", "1 a", languages: "fr"),
    Case(["0 de.lproj/a"], "a", nil, languages: "fr"),
    Case(["0 en.lproj/a"], "a", "0 en.lproj/a en", languages: "fr"),
    Case(["1 fr.lproj/a", "2 fr.lproj/a"], "a", "1 fr.lproj/a fr", languages: "fr"),
    Case(["1 en.lproj/a", "2 fr.lproj/a", "2 a"], "a", "1 en.lproj/a en", languages: "fr:en"),
    // Sub-folders.
    Case(["0 D/a", "1 D/a"], "D/a", "0 D/a"),
    Case(["0 D/b", "1 D/a"], "D/a", "1 D/a"),
    Case(["0 fr.lproj/D/a", "1 D/a"], "D/a", "0 fr.lproj/D/a fr", languages: "fr"),
    Case(["1 D/a", "1 fr.lproj/D/a"], "D/a", "1 D/a", languages: "fr"),
    Case(["1 fr.lproj/D/E/a"], "D/E/a", "1 fr.lproj/D/E/a fr", languages: "fr"),
    Case(["1 D/fr.lproj/a"], "D/a", nil, languages: "fr"),
    Case(["1 D/fr.lproj/a"], "D/fr.lproj/a", "1 D/fr.lproj/a", languages: "fr"),
    Case(["1 fr.lproj/a"], "fr.lproj/a", "1 fr.lproj/a", languages: "de"),
    Case(["1 D/a"], "a", nil),
    // Folders are resources as well, in the highest layer that takes part.
    Case(["1 D/a"], "D", "1 D"),
    Case(["0 D/b", "1 D/a"], "D", "0 D"),
    Case(["0 fr.lproj/D/b", "1 D/a"], "D", "0 fr.lproj/D fr", languages: "fr"),
    Case(["1 M.nib/a", "1 fr.lproj/M.nib/b"], "M.nib", "1 M.nib", languages: "fr"),
    Case(["1 fr.lproj/a"], "fr.lproj", "1 fr.lproj", languages: "fr"),
    // A file in the way of a folder.
    Case(["0 D", "1 D/a"], "D/a", nil),
    Case(["0 D/a", "1 D"], "D/a", "0 D/a"),
    Case(["0 fr.lproj", "1 fr.lproj/a"], "a", nil, languages: "fr"),
    Case(["1 a"], "a/b", nil),
    // Odd names.
    Case(["1 a.b.c"], "a.b.c", "1 a.b.c"),
    Case(["1 .hidden"], ".hidden", "1 .hidden"),
    Case(["1 noextension"], "noextension", "1 noextension"),
    Case(["1 été"], "été", "1 été"),
  ]

  @Test("within a layer: unlocalized, the languages in order, Base", arguments: localizationsCases)
  func localizations(question: Case) throws { #expect(try question.result() == question.expected) }

  static let localizationsCases = [
    Case(["1 a", "1 fr.lproj/a", "1 Base.lproj/a"], "a", "1 a", languages: "fr"),
    Case(["1 fr.lproj/a", "1 Base.lproj/a"], "a", "1 fr.lproj/a fr", languages: "fr"),
    // The development region, which is `en` without an Info.plist, is the last language.
    Case(["1 en.lproj/a", "1 Base.lproj/a"], "a", "1 en.lproj/a en", languages: "fr"),
    Case(["1 de.lproj/a", "1 Base.lproj/a"], "a", "1 Base.lproj/a Base", languages: "fr"),
    Case(["1 en.lproj/a", "1 de.lproj/a"], "a", "1 en.lproj/a en", languages: "ja"),
    Case(["1 en-GB.lproj/a", "1 de.lproj/a"], "a", "1 en-GB.lproj/a en-GB", languages: "ja"),
    Case(["1 en.lproj/a", "1 Base.lproj/a"], "a", "1 en.lproj/a en", languages: "fr:en"),
    Case(["1 en.lproj/a", "1 fr.lproj/a"], "a", "1 fr.lproj/a fr", languages: "fr:en"),
    Case(["1 en.lproj/a", "1 fr.lproj/a"], "a", "1 en.lproj/a en", languages: "en:fr"),
    Case(["1 Base.lproj/a"], "a", "1 Base.lproj/a Base"),
    // Regions and scripts fall back to less specific languages.
    Case(["1 pt.lproj/a"], "a", "1 pt.lproj/a pt", languages: "pt-BR"),
    Case(["1 pt.lproj/a", "1 pt-BR.lproj/a"], "a", "1 pt-BR.lproj/a pt-BR", languages: "pt-BR"),
    Case(["1 pt_BR.lproj/a"], "a", "1 pt_BR.lproj/a pt_BR", languages: "pt-BR"),
    Case(["1 pt-BR.lproj/a"], "a", "1 pt-BR.lproj/a pt-BR", languages: "pt_BR"),
    Case(["1 pt-BR.lproj/a"], "a", "1 pt-BR.lproj/a pt-BR", languages: "PT-br"),
    Case(["1 PT-br.lproj/a"], "a", "1 PT-br.lproj/a PT-br", languages: "PT-br"),
    Case(["1 PT-br.lproj/a"], "a", "1 PT-br.lproj/a PT-br", languages: "pt-BR"),
    Case(["1 pt-PT.lproj/a"], "a", "1 pt-PT.lproj/a pt-PT", languages: "pt-BR"),
    Case(["1 pt-BR.lproj/a"], "a", "1 pt-BR.lproj/a pt-BR", languages: "pt"),
    Case(["1 en.lproj/a", "1 pt.lproj/a"], "a", "1 pt.lproj/a pt", languages: "pt-BR:en"),
    Case(["1 zh.lproj/a"], "a", "1 zh.lproj/a zh", languages: "zh-Hans-CN"),
    Case(["1 zh.lproj/a", "1 zh-Hans.lproj/a"], "a", "1 zh-Hans.lproj/a zh-Hans", languages: "zh-Hans-CN"),
    Case(["1 zh_Hans_CN.lproj/a"], "a", "1 zh_Hans_CN.lproj/a zh_Hans_CN", languages: "zh-hans-cn"),
    Case(["1 zh-Hant.lproj/a", "1 zh.lproj/a"], "a", "1 zh-Hant.lproj/a zh-Hant", languages: "zh-TW"),
    Case(["1 zh_TW.lproj/a", "1 en.lproj/a"], "a", "1 zh_TW.lproj/a zh_TW", languages: "zh-Hant-TW"),
    Case(["1 no.lproj/a", "1 en.lproj/a"], "a", "1 no.lproj/a no", languages: "nb"),
    Case(["1 en-GB.lproj/a", "1 fr.lproj/a"], "a", "1 en-GB.lproj/a en-GB", languages: "en-AU:fr"),
    Case(["1 he.lproj/a", "1 en.lproj/a"], "a", "1 he.lproj/a he", languages: "iw"),
    Case(["1 es-419.lproj/a", "1 es.lproj/a"], "a", "1 es-419.lproj/a es-419", languages: "es-MX"),
    Case(["1 es-419.lproj/b", "1 es.lproj/a"], "a", "1 es.lproj/a es", languages: "es-MX"),
    // A localization that one layer has is searched in each.
    Case(["0 no.lproj/b", "1 nb.lproj/a", "1 no.lproj/a"], "a", "1 nb.lproj/a nb", languages: "nb"),
    Case(["0 no.lproj/a", "1 nb.lproj/a"], "a", "0 no.lproj/a no", languages: "nb"),
    Case(["1 zh-Hans.lproj/a"], "a", "1 zh-Hans.lproj/a zh-Hans", languages: "zh_CN"),
    Case(["1 zh-Hans.lproj/a"], "a", nil, languages: "zh-TW"),
    Case(["1 English.lproj/a"], "a", "1 English.lproj/a English", languages: "English"),
    Case(["1 English.lproj/a"], "a", "1 English.lproj/a English", languages: "en-GB"),
    Case(["1 es.lproj/a"], "a", "1 es.lproj/a es", languages: "es-419"),
    Case(["0 pt.lproj/a", "1 pt-BR.lproj/a"], "a", "0 pt.lproj/a pt", languages: "pt-BR"),
    // `localization=` limits the search to that localization, its parents, and the unlocalized folder.
    Case(["1 fr.lproj/a", "1 en.lproj/a"], "a", "1 en.lproj/a en", languages: "fr", only: "en"),
    Case(["1 a", "1 en.lproj/a"], "a", "1 a", languages: "fr", only: "en"),
    Case(["1 fr.lproj/a", "1 Base.lproj/a"], "a", nil, languages: "fr", only: "en"),
    Case(["1 Base.lproj/a"], "a", "1 Base.lproj/a Base", only: "Base"),
    Case(["1 pt.lproj/a"], "a", "1 pt.lproj/a pt", only: "pt-BR"),
    Case(["1 fr.lproj/a", "1 fr-CA.lproj/a"], "a", "1 fr-CA.lproj/a fr-CA", only: "fr-CA"),
    Case(["1 fr.lproj/a", "1 en.lproj/a"], "a", "1 fr.lproj/a fr", only: "fr-CA"),
    Case(["1 fr-CA.lproj/a", "1 en.lproj/a"], "a", nil, only: "fr"),
    Case(["1 pt_BR.lproj/a"], "a", "1 pt_BR.lproj/a pt_BR", only: "pt-BR"),
    Case(["0 en.lproj/a", "1 a"], "a", "0 en.lproj/a en", only: "en"),
    Case(["1 D/en.lproj/a", "1 en.lproj/D/a"], "D/a", "1 en.lproj/D/a en", only: "en"),
    Case(["1 a"], "a", "1 a", only: "../x"),
    Case(["1 x/a"], "a", nil, only: "../x"),
  ]

  @Test("the resource folder is the main layer's", arguments: layoutsCases)
  func layouts(question: Case) throws { #expect(try question.result() == question.expected) }

  static let layoutsCases = [
    Case(["1 Contents/Resources/a", "1 a"], "a", "1 Contents/Resources/a"),
    Case(["1 Resources/a", "1 a"], "a", "1 Resources/a"),
    Case(["1 Contents/Resources/a", "1 Resources/a"], "a", "1 Contents/Resources/a"),
    Case(["1 Contents/a", "1 a"], "a", "1 a"),
    Case(["1 Contents/Resources", "1 Resources/a"], "a", "1 Resources/a"),
    Case(["1 Resources", "1 a"], "a", "1 a"),
    Case(["0 Resources/a", "1 a"], "a", "1 a"),
    Case(["0 Contents/Resources/a", "1 a"], "a", "1 a"),
    Case(["0 a", "1 Resources/a"], "a", "1 Resources/a"),
    Case(["0 Resources/a", "1 Resources/a"], "a", "0 Resources/a"),
    Case(
      ["0 Contents/Resources/fr.lproj/a", "1 Contents/Resources/a"], "a",
      "0 Contents/Resources/fr.lproj/a fr", languages: "fr"),
    Case(["1 Resources/fr.lproj/D/a"], "D/a", "1 Resources/fr.lproj/D/a fr", languages: "fr"),
    Case(["1 Resources/", "1 a"], "a", nil),
    Case(["0 Resources !", "1 Resources/a"], "a", nil),
    Case(["0 Resources", "1 Resources/a"], "a", nil),
    Case(
      ["1 Versions/A/Resources/a", "1 Versions/Current -> A", "1 Resources -> Versions/Current/Resources"],
      "a", "1 Versions/A/Resources/a"),
  ]

  @Test("hidden entries are not found", arguments: hiddenCases)
  func hidden(question: Case) throws { #expect(try question.result() == question.expected) }

  static let hiddenCases = [
    Case(["0 .wh.a", "1 a"], "a", nil),
    Case(["0 a !", "1 a"], "a", nil),
    Case(["0 .wh.a", "0 a", "1 a"], "a", "0 a"),
    Case(["0 .wh.a", "1 a", "1 fr.lproj/a"], "a", "1 fr.lproj/a fr", languages: "fr"),
    Case(
      ["0 fr.lproj/.wh.a", "1 fr.lproj/a", "1 Base.lproj/a"], "a", "1 Base.lproj/a Base", languages: "fr"),
    Case(["0 .wh.fr.lproj", "1 fr.lproj/a"], "a", nil, languages: "fr"),
    Case(["0 fr.lproj !", "1 fr.lproj/a"], "a", nil, languages: "fr"),
    Case(["0 D/.wh..wh..opq", "1 D/a"], "D/a", nil),
    Case(["0 D/.wh..wh..opq", "0 D/a", "1 D/a"], "D/a", "0 D/a"),
    Case(["0 fr.lproj/.wh..wh..opq", "1 fr.lproj/a"], "a", nil, languages: "fr"),
    Case(["0 .wh.a", "1 a", "2 a"], "a", nil),
    Case(["0 b", "1 .wh.a", "2 a"], "a", nil),
    Case(["0 a", "1 .wh.a", "2 a"], "a", "0 a"),
    Case(["0 .wh.D", "1 D/a"], "D", nil),
    Case(["1 .wh.a", "1 a"], "a", "1 a"),
    Case(["1 .wh.a"], ".wh.a", nil),
  ]

  @Test("symbolic links are followed inside the bundle only", arguments: linksCases)
  func links(question: Case) throws { #expect(try question.result() == question.expected) }

  static let linksCases = [
    Case(["1 a -> b", "1 b"], "a", "1 b"),
    Case(["1 a -> D/../b", "1 b", "1 D/"], "a", "1 b"),
    Case(["1 D/a -> ../b", "1 b"], "D/a", "1 b"),
    Case(["1 L -> D", "1 D/a"], "L/a", "1 D/a"),
    Case(["1 L -> ./D/", "1 D/a"], "L", "1 D"),
    Case(["1 a -> b", "0 b", "1 b"], "a", "0 b"),
    Case(["0 a -> b", "1 a", "1 b"], "a", "1 b"),
    Case(["1 fr_CA.lproj -> fr.lproj", "1 fr.lproj/a"], "a", "1 fr.lproj/a fr_CA", languages: "fr-CA"),
    Case(["1 a -> b", "1 b -> c", "1 c"], "a", "1 c"),
    // A link that leads nowhere is found as it is.
    Case(["1 a -> nowhere"], "a", "1 a"),
    Case(["0 a -> nowhere", "1 a"], "a", "0 a"),
    Case(["1 a -> /etc/passwd"], "a", "1 a"),
    Case(["1 a -> ../../../../etc/passwd"], "a", "1 a"),
    Case(["1 a -> ../1/b", "1 b"], "a", "1 a"),
    Case(["1 a -> a"], "a", "1 a"),
    Case(["1 a -> b", "1 b -> a"], "a", "1 a"),
    Case(["1 a -> b/", "1 b"], "a", "1 a"),
    // On the way it is a dead end.
    Case(["1 L -> /etc"], "L/passwd", nil),
    Case(["1 L -> ../../../etc"], "L/passwd", nil),
    Case(["1 L -> L"], "L/a", nil),
    Case(["1 fr.lproj -> /etc"], "passwd", nil, languages: "fr"),
  ]

  @Test("invalid names are not found", arguments: ["..", ".", "", "a/b", "a\0", "a\0b"])
  func impossible(name: String) throws {
    let fixture = try LookupFixture(["1 a", "1 D/a"])
    let lookup = ResourceLookup(stack: fixture.stack)
    #expect(try lookup.find([Array(name.utf8)]) == nil)
    #expect(try lookup.find([Array("D".utf8), Array(name.utf8), Array("a".utf8)]) == nil)
    #expect(try lookup.find([Array(repeating: 0x61, count: 256)]) == nil)
    #expect(try lookup.find([]) == nil)
  }

  @Test("at most 40 links are followed", arguments: [(40, "1 end"), (41, "1 l0")])
  func chain(length: Int, expected: String) throws {
    let links = (0..<length).map { "1 l\($0) -> " + ($0 == length - 1 ? "end" : "l\($0 + 1)") }
    #expect(try Case(links + ["1 end"], "l0", nil).result() == expected)
  }

  @Test("changes in a layer are visible at once")
  func changes() throws {
    let fixture = try LookupFixture(["1 fr.lproj/a"])
    let lookup = ResourceLookup(
      stack: fixture.stack, options: ResourceOptions(userLanguages: names("fr", ":")))
    func answer() throws -> String? { try lookup.find(names("a", "/"))?.summary }
    #expect(try answer() == "1 fr.lproj/a fr")
    try (fixture.path(0) / "en.lproj/a").parent.makeDirectories()
    try (fixture.path(0) / "en.lproj/a").write("")
    #expect(try answer() == "0 en.lproj/a en")
    try (fixture.path(0) / "en.lproj").rename(to: try fixture.path(0) / "ca.lproj")
    #expect(try answer() == "1 fr.lproj/a fr")
    try (fixture.path(0) / "Info.plist").write("{ CFBundleDevelopmentRegion = ca; }")
    #expect(try answer() == "0 ca.lproj/a ca")
    try (fixture.path(1) / "Resources").makeDirectory()
    #expect(try answer() == nil)
  }
}
