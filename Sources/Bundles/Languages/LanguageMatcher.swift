/// Finds the localizations of a bundle that serve a language, as Foundation does on Apple's platforms.
///
/// There Foundation calls `ualoc_localizationsToUse` of Apple's ICU; on Linux it does not, and takes the first
/// localization. Languages and scripts are equal or they do not match, except for other names of a language (`iw` and
/// `he`, `nb` and `no`). Regions fall back along CLDR's parents, then to the form of another region.
struct LanguageMatcher: Sendable {
  private struct Localization: Sendable {
    let name: [UInt8]
    let tag: LanguageTag
  }

  /// The names of the localizations, without `Base`.
  let names: [[UInt8]]
  /// Those that are languages' names.
  private let localizations: [Localization]
  private let present: Set<[UInt8]>

  init(_ names: [[UInt8]]) {
    self.names = names.filter { $0 != Language.base }
    present = Set(self.names)
    localizations = self.names.compactMap { name in
      LanguageTag(name).map { Localization(name: name, tag: $0) }
    }
  }

  /// The localizations for a language, best first: those from which its texts are taken one after the other.
  func matches(for language: [UInt8]) -> [[UInt8]] {
    var found = spellings(of: language)
    guard let wanted = LanguageTag(language) else { return found }
    let own = [wanted.language] + (LanguageTables.parents[wanted.language] ?? [])
    append(own, wanted, to: &found)
    if found.isEmpty { append(LanguageTables.substitutes[wanted.language] ?? [], wanted, to: &found) }
    if found.isEmpty, let other = otherRegion(of: wanted) { found.append(other) }
    // CLDR's parent of Hindi in Latin script.
    if found.isEmpty, wanted.language == "hi", wanted.script == "Latn" {
      return matches(for: Array("en-IN".utf8))
    }
    return found
  }

  /// Preferred languages in the order in which Foundation takes them: one that the bundle has comes before those forms of
  /// it that the bundle lacks (`es` before `es-MX`, for a bundle with `es` and `es-419`).
  func ordered(_ languages: [[UInt8]]) -> [[UInt8]] {
    var ordered: [[UInt8]] = []
    for (index, language) in languages.enumerated() where !ordered.contains(language) {
      if !has(language), let tag = LanguageTag(language) {
        let other = languages[index...].first { other in
          has(other)
            && LanguageTag(other).map { $0.language == tag.language && $0.script == tag.script } == true
        }
        if let other, !ordered.contains(other) { ordered.append(other) }
      }
      ordered.append(language)
    }
    return ordered
  }

  /// Whether the bundle has a language by this name, in any spelling.
  func has(_ language: [UInt8]) -> Bool { !spellings(of: language).isEmpty }

  private func spellings(of language: [UInt8]) -> [[UInt8]] {
    Language.folderNames(of: language).compactMap(Language.localization(ofFolder:)).filter(present.contains)
  }

  private func append(_ languages: [String], _ wanted: LanguageTag, to found: inout [[UInt8]]) {
    for language in languages {
      let group = self.group(language, wanted)
      for region in wanted.regions {
        let matching = group.filter {
          $0.tag.region == region && ($0.tag.variants.isEmpty || $0.tag.variants == wanted.variants)
        }
        // Bounds the work for an archive that has thousands of names of one language.
        for localization in Self.sorted(matching, for: wanted).prefix(16)
        where !found.contains(localization.name) { found.append(localization.name) }
      }
    }
  }

  /// The localizations in a language and in the wanted script.
  private func group(_ language: String, _ wanted: LanguageTag) -> [Localization] {
    localizations.filter { $0.tag.language == language && $0.tag.script == wanted.script }
  }

  /// The same variants first (`ca-valencia`), then those that name a script or not as the wanted one does, and `de`
  /// before `German`.
  private static func sorted(_ group: [Localization], for wanted: LanguageTag) -> [Localization] {
    func rank(_ localization: Localization) -> (Int, Int, Int) {
      let tag = localization.tag
      return (
        tag.variants == wanted.variants ? 0 : 1, tag.hasScript == wanted.hasScript ? 0 : 1,
        localization.name.count
      )
    }
    return group.sorted { rank($0) < rank($1) }
  }

  /// The localization for another region: one that inherits from the same, else the likely region's, else the most
  /// general one.
  private func otherRegion(of wanted: LanguageTag) -> [UInt8]? {
    let parent = wanted.region.flatMap {
      LanguageTables.parent(of: $0, in: wanted.language, script: wanted.script)
    }
    let languages = [
      [wanted.language], LanguageTables.parents[wanted.language] ?? [],
      LanguageTables.substitutes[wanted.language] ?? [],
    ].joined()
    for group in languages.lazy.map({ group($0, wanted) }) where !group.isEmpty {
      func rank(_ tag: LanguageTag) -> (Int, Int, Int) {
        let likely = LanguageTables.region(of: tag.language, script: tag.script)
        return (
          parent != nil && tag.regions.contains(parent) ? 0 : 1, tag.region == likely ? 0 : 1,
          tag.regions.count
        )
      }
      return group.min { rank($0.tag) < rank($1.tag) }?.name
    }
    return nil
  }
}

extension Language {
  /// Those of some localizations that serve for the preferred languages, best first.
  public static func preferred(from localizations: [[UInt8]], for languages: [[UInt8]]) -> [[UInt8]] {
    let matcher = LanguageMatcher(localizations)
    var names: [[UInt8]] = []
    for language in matcher.ordered(languages) {
      for name in matcher.matches(for: language) where !names.contains(name) { names.append(name) }
    }
    return names
  }
}
