import TestSupport
import Testing

@testable import Bundles

@Suite struct LanguageTests {
  @Test(
    "the user's languages, by the order of variables",
    arguments: [
      (["LANG": "fr_CA.UTF-8"], "fr-CA"), (["LANG": "fr"], "fr"), (["LANG": "C"], ""),
      (["LANG": "C.UTF-8"], ""), (["LANG": "POSIX"], ""), ([:], ""), (["LANG": ""], ""),
      (["LC_ALL": "de_DE@euro", "LANG": "fr"], "de-DE"),
      (["LC_ALL": "", "LC_MESSAGES": "it_IT.ISO-8859-1", "LANG": "fr"], "it-IT"),
      (["LC_ALL": "C", "LANG": "fr"], ""), (["LC_MESSAGES": "nl", "LANG": "fr"], "nl"),
      (["LANG": "zh_CN.UTF-8"], "zh-CN"), (["LANG": "zh_HK.BIG5"], "zh-HK"),
      (["LANG": "sr_RS@latin"], "sr-Latn-RS"), (["LANG": "sr_RS.UTF-8@latin"], "sr-Latn-RS"),
      (["LANG": "uz_UZ@cyrillic"], "uz-Cyrl-UZ"), (["LANG": "../../etc"], ""), (["LANG": "english"], ""),
      (["LANG": "_"], ""), (["LANG": "ast_ES"], "ast-ES"),
      // LANGUAGE precedes the locale, but for that of programs that speak none.
      (["LANGUAGE": "fr:de"], "fr de"), (["LANGUAGE": "fr:de", "LANG": "en_US.UTF-8"], "fr de"),
      (["LANGUAGE": "pt_BR:pt:en", "LC_ALL": "it_IT"], "pt-BR pt en"),
      (["LANGUAGE": "fr:de", "LANG": "C"], ""), (["LANGUAGE": "fr", "LANG": "fr", "LC_ALL": "POSIX"], ""),
      (["LANGUAGE": "fr", "LANG": "C.UTF-8"], "fr"), (["LANGUAGE": "", "LANG": "fr"], "fr"),
      (["LANGUAGE": ":../x:", "LANG": "fr"], "fr"), (["LANGUAGE": "sr@latin:", "LANG": "fr"], "sr-Latn"),
    ] as [([String: String], String)])
  func environment(variables: [String: String], expected: String) {
    let languages = Language.ofUser { variables[$0] }
    #expect(languages.map { text([$0]) }.joined(separator: " ") == expected)
  }

  @Test(
    "the fallbacks of a language",
    arguments: [
      ("pt-BR", "pt-BR pt"), ("pt_BR", "pt_BR pt"), ("zh-Hans-CN", "zh-Hans-CN zh-Hans zh"), ("fr", "fr"),
      ("zh-CN", "zh-CN zh-Hans zh"), ("ZH_tw", "ZH_tw zh-Hant zh"), ("English", "English"), ("", ""),
      ("a-b-c-d", "a-b-c-d a-b-c a-b a"),
    ])
  func fallbacks(language: String, expected: String) {
    let names = Language.fallbacks(of: Array(language.utf8)).map { text([$0]) }
    #expect(names.joined(separator: " ") == expected)
  }

  @Test(
    "the folders of a localization",
    arguments: [
      ("fr", "fr.lproj"), ("pt-BR", "pt-BR.lproj pt_BR.lproj"), ("pt_BR", "pt_BR.lproj pt-BR.lproj"),
      ("PT_br", "PT_br.lproj pt-BR.lproj pt_BR.lproj"),
      ("zh-hans-cn", "zh-hans-cn.lproj zh-Hans-CN.lproj zh_Hans_CN.lproj"),
      ("es-419", "es-419.lproj es_419.lproj"),
      ("Base", "Base.lproj"), ("English", "English.lproj"),
    ])
  func folders(localization: String, expected: String) {
    let names = Language.folderNames(of: Array(localization.utf8)).map { text([$0]) }
    #expect(names.joined(separator: " ") == expected)
  }

  @Test("the languages of the user or the options, then the development region")
  func defaults() {
    let user = ResourceOptions(userLanguages: names("fr-CA:fr", ":"))
    func list(_ options: ResourceOptions, _ region: String?) -> String {
      text(
        options.preferredLanguages + options.ownLanguages(developmentRegion: region.map { Array($0.utf8) }))
    }
    #expect(list(user, "de") == "fr-CA/fr/de/en")
    #expect(list(user, "en-GB") == "fr-CA/fr/en-GB/en")
    #expect(list(user, nil) == "fr-CA/fr/en")
    #expect(list(ResourceOptions(), "en") == "en/en")
    var chosen = user
    chosen.languages = names("pt-BR:it:pt-PT", ":")
    #expect(list(chosen, "de") == "pt-BR/it/pt-PT/de")
    #expect(list(chosen, nil) == "pt-BR/it/pt-PT/en")
  }

  @Test("the default list in a lookup")
  func region() throws {
    let fixture = try LookupFixture(["1 de.lproj/a", "1 en.lproj/a"])
    let lookup = ResourceLookup(stack: fixture.stack)
    #expect(try lookup.find(names("a", "/"))?.summary == "1 en.lproj/a en")
    try (fixture.path(1) / "Info.plist").write("{ CFBundleDevelopmentRegion = de; }")
    #expect(try lookup.find(names("a", "/"))?.summary == "1 de.lproj/a de")
    try (fixture.path(0) / "Info.plist").write("{ CFBundleDevelopmentRegion = en; }")
    #expect(try lookup.find(names("a", "/"))?.summary == "1 en.lproj/a en")
  }
}
