/// Languages as localizations name them (BCP 47): `fr`, `pt-BR`, `zh-Hans-CN`.
///
/// Names are bytes, since a bundle's folders may be called anything. Only the letters of ASCII have a case.
public enum Language {
  /// The localizations to try for a language, most specific first: `pt-BR` falls to `pt`, `zh-Hans-CN` to
  /// `zh-Hans`, then `zh`. Chinese of a region that writes in one script falls to that script too, since a
  /// locale cannot name it: `zh-TW` to `zh-Hant`, then `zh`.
  public static func fallbacks(of language: [UInt8]) -> [[UInt8]] {
    var subtags = subtags(of: language)
    if let script = impliedScript(of: subtags) {
      return [language, Array("zh-".utf8) + script, Array("zh".utf8)]
    }
    var names = [language]
    // More than a language tag ever has.
    if subtags.count > 16 { return names }
    while subtags.count > 1 {
      subtags.removeLast()
      names.append(Array(subtags.joined(separator: CollectionOfOne(hyphen))))
    }
    return names
  }

  /// The folders to try for a localization, without those of its fallbacks: its name as given, then in the
  /// customary case with hyphens (`pt-BR.lproj`), then with underscores (`pt_BR.lproj`).
  ///
  /// Case is not ignored otherwise: that would take a listing of the folder for every lookup.
  public static func folderNames(of localization: [UInt8]) -> [[UInt8]] {
    let customary = customarySubtags(of: localization)
    var names = [localization]
    for separator in [hyphen, underscore] {
      let name = Array(customary.joined(separator: CollectionOfOne(separator)))
      if !names.contains(name) { names.append(name) }
    }
    return names.map { $0 + folderSuffix }
  }

  /// The localization that a folder is of: `pt-BR` for `pt-BR.lproj`; nil for another name.
  public static func localization(ofFolder name: [UInt8]) -> [UInt8]? {
    guard name.count > folderSuffix.count, name.suffix(folderSuffix.count).elementsEqual(folderSuffix) else {
      return nil
    }
    return name.dropLast(folderSuffix.count)
  }

  /// The languages of a user by the variables of locale(7), the first that is set: LC_ALL, LC_MESSAGES, LANG.
  ///
  /// `fr_CA.UTF-8` is `fr-CA`, then `fr`; `sr_RS@latin` is `sr-Latn-RS` and its fallbacks; `C` and `POSIX`
  /// are no language.
  public static func ofUser(environment: (String) -> String?) -> [[UInt8]] {
    for variable in ["LC_ALL", "LC_MESSAGES", "LANG"] {
      guard let locale = environment(variable), !locale.isEmpty else { continue }
      guard let language = language(ofLocale: Array(locale.utf8)) else { return [] }
      return fallbacks(of: language)
    }
    return []
  }

  /// The folder of what all localizations share.
  static let base = Array("Base".utf8)
  private static let folderSuffix = Array(".lproj".utf8)
  private static let hyphen = UInt8(ascii: "-")
  private static let underscore = UInt8(ascii: "_")

  /// `LANGUAGE[_TERRITORY][.CODESET][@MODIFIER]`; nil for one that is no language.
  private static func language(ofLocale locale: [UInt8]) -> [UInt8]? {
    let name = locale.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "@") }
    if name.elementsEqual("C".utf8) || name.elementsEqual("POSIX".utf8) { return nil }
    var subtags = customarySubtags(of: Array(name))
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
    language.split(omittingEmptySubsequences: false) { $0 == hyphen || $0 == underscore }.map { Array($0) }
  }

  /// Language `fr`, script `Hans`, region `BR` or `419`; anything else as it is.
  private static func customarySubtags(of language: [UInt8]) -> [[UInt8]] {
    var customary: [[UInt8]] = []
    for (place, subtag) in subtags(of: language).enumerated() {
      switch (place, subtag.count) {
      case (0, 2...3): customary.append(lowercased(subtag))
      case (1, 4):
        customary.append(uppercased(Array(subtag.prefix(1))) + lowercased(Array(subtag.dropFirst())))
      case (1..., 2): customary.append(uppercased(subtag))
      default: customary.append(subtag)
      }
    }
    return customary
  }
}

/// ASCII letters in lower case; other bytes as they are.
func lowercased(_ name: [UInt8]) -> [UInt8] {
  name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
}

private func uppercased(_ name: [UInt8]) -> [UInt8] {
  name.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 & ~0x20 : $0 }
}

private func isLetter(_ byte: UInt8) -> Bool {
  (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
}
