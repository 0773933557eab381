/// The options of a resource lookup.
public struct ResourceOptions: Sendable, Hashable {
  /// The device family of an image variant.
  public enum Idiom: String, Sendable, CaseIterable {
    case phone
    case pad

    var suffix: String { self == .phone ? "~iphone" : "~ipad" }
  }

  /// The languages in order (`languages=fr:en`), each followed by its fallbacks; nil for ``userLanguages``, then the
  /// bundle's development region, then `en`.
  public var languages: [[UInt8]]?
  /// The languages of the mounting user, used if `languages` is nil.
  public var userLanguages: [[UInt8]]
  /// The scale of the screen (`scale=2`). If nil and the idiom is set, 1.
  public var scale: Int?
  /// The device family (`idiom=pad`). If nil and the scale is set, `phone`, as in ProxyBundle.
  public var idiom: Idiom?

  /// Creates options. The scale is positive; for `userLanguages` see ``Language/ofUser(environment:)``.
  public init(
    languages: [[UInt8]]? = nil, userLanguages: [[UInt8]] = [], scale: Int? = nil, idiom: Idiom? = nil
  ) {
    self.languages = languages
    self.userLanguages = userLanguages
    self.scale = scale
    self.idiom = idiom
  }

  /// The localizations to search, in order and unique, without `Base`.
  func localizations(developmentRegion: [UInt8]?) -> [[UInt8]] {
    let preferred = languages ?? userLanguages + [developmentRegion, Array("en".utf8)].compactMap { $0 }
    var names: [[UInt8]] = []
    for language in preferred {
      for name in Language.fallbacks(of: language) where !names.contains(name) { names.append(name) }
    }
    return names
  }

  var hasVariants: Bool { scale != nil || idiom != nil }
}
