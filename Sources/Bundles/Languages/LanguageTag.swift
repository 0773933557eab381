/// A language as a tag (BCP 47) or the name of a localization says it, in the parts that are compared.
struct LanguageTag: Hashable, Sendable {
  let language: String
  /// The likely one if the tag has none.
  let script: String
  let hasScript: Bool
  let region: String?
  /// Everything else but extensions, in lower case.
  let variants: [String]

  /// - Returns: nil for a name that is no language's, such as `Base`.
  init?(_ name: [UInt8]) {
    let text = String(decoding: name, as: UTF8.self)
    var subtags = Language.canonicalSubtags(of: LanguageTables.names[text].map { Array($0.utf8) } ?? name)
      .map { String(decoding: $0, as: UTF8.self) }
    if let first = subtags.first, let alias = LanguageTables.aliases[first] {
      subtags.replaceSubrange(0..<1, with: alias.split(separator: "-").map(String.init))
    }
    guard let language = subtags.first, Self.isLanguage(language) else { return nil }
    self.init(language: language, subtags.dropFirst())
  }

  private init(language: String, _ subtags: ArraySlice<String>) {
    var (script, region): (String?, String?)
    var variants: [String] = []
    for subtag in subtags {
      // What follows a single letter is no part of the language.
      if subtag.utf8.count <= 1 { break }
      if script == nil, region == nil, variants.isEmpty, Self.isScript(subtag) {
        // A style of Arabic.
        script = subtag == "Aran" ? "Arab" : subtag
      } else if region == nil, variants.isEmpty, Self.isRegion(subtag) {
        region = subtag
      } else {
        variants.append(subtag.lowercased())
      }
    }
    self.language = language
    hasScript = script != nil
    self.script = script ?? LanguageTables.script(of: language, region: region)
    self.region = region
    self.variants = variants
  }

  /// The regions in whose form of the language a text is looked for: its own, those that this one inherits from, and
  /// the language without a region (nil). Traditional Chinese without a region is that of Taiwan.
  var regions: [String?] {
    var chain: [String?] = []
    var next = region ?? (language == "yue" ? "HK" : nil)
    while let region = next, !chain.contains(region) {
      chain.append(region)
      next = LanguageTables.parent(of: region, in: language, script: script)
    }
    chain.append(nil)
    if script == "Hant", !chain.contains("TW") { chain.append("TW") }
    return chain
  }

  private static func isLanguage(_ text: String) -> Bool {
    (2...3).contains(text.utf8.count)
      && text.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
  }

  private static func isScript(_ text: String) -> Bool {
    text.utf8.count == 4 && text.utf8.allSatisfy { (UInt8(ascii: "A")...UInt8(ascii: "z")).contains($0) }
  }

  private static func isRegion(_ text: String) -> Bool {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    let capitals = UInt8(ascii: "A")...UInt8(ascii: "Z")
    return text.utf8.count == 2 && text.utf8.allSatisfy(capitals.contains)
      || text.utf8.count == 3 && text.utf8.allSatisfy(digits.contains)
  }
}
