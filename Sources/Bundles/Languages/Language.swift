/// Language tags (BCP 47) in the names of localizations: `fr`, `pt-BR`, `zh-Hans-CN`.
///
/// Names are bytes because folder names are. Only ASCII letters have a case.
public enum Language {
  /// A language and its parents by the parts of its name, most specific first: `pt-BR`, `pt`; `zh-Hans-CN`, `zh-Hans`,
  /// `zh`. Chinese regions imply a script, which locale names cannot express: `zh-TW`, `zh-Hant`, `zh`.
  public static func fallbacks(of language: [UInt8]) -> [[UInt8]] {
    var subtags = subtags(of: language)
    if let script = impliedScript(of: subtags) {
      return [language, Array("zh-".utf8) + script, Array("zh".utf8)]
    }
    var names = [language]
    // Longer than any valid tag; bounds the work.
    if subtags.count > 16 { return names }
    while subtags.count > 1 {
      subtags.removeLast()
      names.append(Array(subtags.joined(separator: CollectionOfOne(hyphen))))
    }
    return names
  }

  /// The candidate folders of a localization, without fallbacks: the name as given, then in canonical case with
  /// hyphens (`pt-BR.lproj`), then with underscores (`pt_BR.lproj`).
  ///
  /// The match is otherwise case-sensitive; ignoring case would need a directory listing for each lookup.
  public static func folderNames(of localization: [UInt8]) -> [[UInt8]] {
    let canonical = canonicalSubtags(of: localization)
    var names = [localization]
    for separator in [hyphen, underscore] {
      let name = Array(canonical.joined(separator: CollectionOfOne(separator)))
      if !names.contains(name) { names.append(name) }
    }
    return names.map { $0 + folderSuffix }
  }

  /// The localization of a folder: `pt-BR` for `pt-BR.lproj`; nil for other names.
  public static func localization(ofFolder name: [UInt8]) -> [UInt8]? {
    guard name.count > folderSuffix.count, name.suffix(folderSuffix.count).elementsEqual(folderSuffix) else {
      return nil
    }
    return name.dropLast(folderSuffix.count)
  }

  /// The user's languages in order: those of LANGUAGE (`fr:de`), or else the one of the locale, which is the first
  /// non-empty one of LC_ALL, LC_MESSAGES and LANG (locale(7)).
  ///
  /// `fr_CA.UTF-8` yields `fr-CA`, `sr_RS@latin` `sr-Latn-RS`. The locales `C` and `POSIX` yield nothing; as for
  /// gettext(3), LANGUAGE does not count with them.
  public static func ofUser(environment: (String) -> String?) -> [[UInt8]] {
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap(environment).first { !$0.isEmpty } ?? ""
    if locale == "C" || locale == "POSIX" { return [] }
    let list = (environment("LANGUAGE") ?? "").split(separator: ":")
    let languages = list.compactMap { language(ofLocale: Array($0.utf8)) }
    if !languages.isEmpty { return languages }
    return language(ofLocale: Array(locale.utf8)).map { [$0] } ?? []
  }

  /// The localization of resources shared by all languages.
  static let base = Array("Base".utf8)
  static let folderSuffix = Array(".lproj".utf8)
  private static let hyphen = UInt8(ascii: "-")
  private static let underscore = UInt8(ascii: "_")

  /// Parses `LANGUAGE[_TERRITORY][.CODESET][@MODIFIER]`; nil without a language.
  private static func language(ofLocale locale: [UInt8]) -> [UInt8]? {
    let name = locale.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "@") }
    if name.elementsEqual("C".utf8) || name.elementsEqual("POSIX".utf8) { return nil }
    var subtags = canonicalSubtags(of: Array(name))
    guard let first = subtags.first, (2...3).contains(first.count), first.allSatisfy(isLetter) else {
      return nil
    }
    if let script = script(ofModifier: locale.drop { $0 != UInt8(ascii: "@") }) {
      subtags.insert(script, at: 1)
    }
    return Array(subtags.joined(separator: CollectionOfOne(hyphen)))
  }

  private static func script(ofModifier modifier: ArraySlice<UInt8>) -> [UInt8]? {
    if modifier.elementsEqual("@latin".utf8) { return Array("Latn".utf8) }
    if modifier.elementsEqual("@cyrillic".utf8) { return Array("Cyrl".utf8) }
    return nil
  }

  private static func impliedScript(of subtags: [[UInt8]]) -> [UInt8]? {
    guard subtags.count == 2, lowercased(subtags[0]).elementsEqual("zh".utf8) else { return nil }
    switch String(decoding: uppercased(subtags[1]), as: UTF8.self) {
    case "CN", "SG": return Array("Hans".utf8)
    case "TW", "HK", "MO": return Array("Hant".utf8)
    default: return nil
    }
  }

  private static func subtags(of language: [UInt8]) -> [[UInt8]] {
    // No folder has such a name; as one subtag it stays as it is.
    if language.count > 255 { return [language] }
    return language.split(omittingEmptySubsequences: false) { $0 == hyphen || $0 == underscore }.map {
      Array($0)
    }
  }

  /// The subtags in canonical case: language `fr`, script `Hans`, region `BR`; others are unchanged.
  static func canonicalSubtags(of language: [UInt8]) -> [[UInt8]] {
    var canonical: [[UInt8]] = []
    for (index, subtag) in subtags(of: language).enumerated() {
      switch (index, subtag.count) {
      case (0, 2...3): canonical.append(lowercased(subtag))
      case (1, 4):
        canonical.append(uppercased(Array(subtag.prefix(1))) + lowercased(Array(subtag.dropFirst())))
      case (1..., 2): canonical.append(uppercased(subtag))
      default: canonical.append(subtag)
      }
    }
    return canonical
  }
}

/// ASCII only.
func lowercased(_ name: [UInt8]) -> [UInt8] {
  name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
}

private func uppercased(_ name: [UInt8]) -> [UInt8] {
  name.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 & ~0x20 : $0 }
}

private func isLetter(_ byte: UInt8) -> Bool {
  (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
}
