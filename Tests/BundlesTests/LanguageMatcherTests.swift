import TestSupport
import Testing
import _FoundationICU

@testable import Bundles

/// The matching of languages, judged by the function of ICU that Foundation calls for it on Apple's platforms. On Linux
/// Foundation has the function but does not call it.
@Suite struct LanguageMatcherTests {
  /// What Foundation chooses for the first language that has any localization.
  private static func theirs(_ languages: [String], _ localizations: [String]) -> [String] {
    withCStrings(languages[...]) { languages in
      withCStrings(localizations[...]) { localizations in
        var found = [UnsafePointer<CChar>?](repeating: nil, count: localizations.count)
        var status = U_ZERO_ERROR
        let count = ualoc_localizationsToUse(
          languages, Int32(languages.count), localizations, Int32(localizations.count), &found,
          Int32(found.count), &status)
        return found.prefix(max(0, Int(count))).compactMap { $0.map { String(cString: $0) } }
      }
    }
  }

  private static func withCStrings<Result>(
    _ strings: ArraySlice<String>, _ pointers: [UnsafePointer<CChar>?] = [],
    _ body: ([UnsafePointer<CChar>?]) -> Result
  ) -> Result {
    guard let first = strings.first else { return body(pointers) }
    return first.withCString { withCStrings(strings.dropFirst(), pointers + [$0], body) }
  }

  private static func ours(_ languages: [String], _ localizations: [String]) -> [String] {
    let matcher = LanguageMatcher(localizations.map { Array($0.utf8) })
    for language in matcher.ordered(languages.map { Array($0.utf8) }) {
      let found = matcher.matches(for: language)
      if !found.isEmpty { return found.map { text([$0]) } }
    }
    return []
  }

  private static func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }

  private static let bundles = [
    "en no", "en pt-PT", "en-GB fr", "en zh_TW", "en he", "en es es-419", "en fr de", "en-AU en-GB",
    "en-AU en-US en-GB en", "zh-Hans zh-Hant en", "zh_CN zh_TW zh_HK", "pt pt-PT pt-BR en",
    "es es-419 es-MX en", "fr fr-CA en", "fr-CA en", "de-AT de-CH", "English French German", "sr sr-Latn en",
    "nb nn no en", "yue-Hant zh-Hant en", "fil en", "id ms en", "uz-Cyrl uz-Latn", "az az-Cyrl", "en-CA en",
    "en_GB en_AU en_IN en", "en_001 en_150 en", "ca ca-valencia es", "kok ro he id yi", "pa pa-Arab ur",
    "Base ar cs da de el en es fi fr he hu it ja ko nb nl pl pt pt-PT ru sv tr uk zh-Hans zh-Hant",
    "sr-Latn hr bs", "mn mn-Mong kk ky tg", "hi en", "ku ckb fa", "",
  ].map(words)

  private static let languages =
    (0..<swift_uloc_countAvailable()).compactMap { swift_uloc_getAvailable($0).map { String(cString: $0) } }
    + words(
      """
      nb nn no iw he in id ji yi tl fil mo ro sh sr-Latn zh-HK zh-MO zh-SG zh-TW zh-CN zh-Hant-TW zh-Hans-HK pt-AO \
      pt-MO es-AR es-US en-150 en-001 en-NZ cmn-Hans yue-HK prs gom English German x-y en-US-POSIX de-DE-1996 \
      en-u-ca-gregory ca-valencia sl-rozaj be-tarask gsw lb az-IR uz-AF kk-CN
      """)

  /// Where ICU takes Punjabi of Pakistan, which is written in Arabic, for that of India, and forgets Hong Kong.
  private static let exceptions: Set<String> = ["pa_Aran_PK", "yue_Hant_CN"]

  @Test("every language of ICU has the localizations that Foundation chooses")
  func agreement() {
    var different: [String] = []
    for language in Self.languages where !Self.exceptions.contains(language) {
      for bundle in Self.bundles {
        let (ours, theirs) = (Self.ours([language], bundle), Self.theirs([language], bundle))
        if ours != theirs { different.append("\(language) of \(bundle): \(ours) instead of \(theirs)") }
      }
    }
    #expect(Self.languages.count > 1000 && different.isEmpty, "\(different.prefix(20))")
  }

  /// As Chrome, Firefox, Safari and Edge send them in several countries.
  private static let browsers = [
    "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", "fr,fr-FR;q=0.8,en-US;q=0.5,en;q=0.3", "en-AU,en;q=0.9",
    "pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7",
    "nb-NO,nb;q=0.9,no-NO;q=0.8,no;q=0.6,nn-NO;q=0.5,nn;q=0.4,en-US;q=0.3",
    "zh-TW,zh;q=0.9,en-US;q=0.8,en;q=0.7", "zh-CN,zh;q=0.8,zh-TW;q=0.7,zh-HK;q=0.5,en-US;q=0.3,en;q=0.2",
    "es-MX,es;q=0.9,en;q=0.8", "he-IL,he;q=0.9,en-US;q=0.8,en;q=0.7", "ja,en-US;q=0.9,en;q=0.8",
    "fr-CA,fr-FR;q=0.9,fr;q=0.8,en-CA;q=0.7,en;q=0.6", "sr-RS,sr;q=0.8,sr-CS;q=0.6,en-US;q=0.4,en;q=0.2",
  ]

  @Test("the Accept-Language lists of browsers", arguments: browsers)
  func acceptLanguage(list: String) {
    let languages = list.split(separator: ",").map { String($0.prefix { $0 != ";" }) }
    for bundle in Self.bundles {
      #expect(Self.ours(languages, bundle) == Self.theirs(languages, bundle), "\(list) of \(bundle)")
    }
  }

  @Test(
    "other names, regions and scripts",
    arguments: [
      ("nb", "en no", "no"), ("pt-BR", "en pt-PT", "pt-PT"), ("en-AU", "en-GB fr", "en-GB"),
      ("zh-Hant-TW", "en zh_TW", "zh_TW"), ("iw", "en he", "he"), ("es-MX", "es es-419 en", "es-419 es"),
      ("fr-CA", "en fr", "fr"), ("zh-HK", "zh-Hans en", ""), ("da", "nb en", ""), ("gsw", "de en", ""),
      ("Base", "Base en", ""), ("", "en", ""), ("en", "Base", ""),
    ])
  func pairs(language: String, bundle: String, expected: String) {
    let found = Self.ours([language], Self.words(bundle))
    #expect(found == Self.words(expected))
  }

  @Test("a long list of localizations with long names is matched in linear time")
  func worstCase() {
    let long = Array(repeating: "en-", count: 100).joined()
    let names =
      (0..<20_000).map { Array("\(long)\($0)".utf8) } + (0..<20_000).map { Array("en-u-v\($0)".utf8) }
    let matcher = LanguageMatcher(names)
    let time = ContinuousClock().measure {
      for _ in 0..<10 { _ = matcher.matches(for: Array("en-AU".utf8)) }
    }
    #expect(time < .seconds(20))
  }
}
