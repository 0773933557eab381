/// How the user of a mount wants resources looked up.
public struct ResourceOptions: Sendable, Hashable {
  /// The kind of device that an image variant is for.
  public enum Idiom: String, Sendable, CaseIterable {
    case phone
    case pad

    /// The word after `~` in the names of variants.
    var suffix: String { self == .phone ? "~iphone" : "~ipad" }
  }

  /// The languages in order (`languages=fr:en`), each followed by its fallbacks; nil stands for those of
  /// ``userLanguages``, then the bundle's development region, then `en`.
  public var languages: [[UInt8]]?
  /// The languages of the user who mounts, in order; looked at only without `languages`.
  public var userLanguages: [[UInt8]]
  /// The scale of the screen (`scale=2`); nil: not set, which counts as 1 when the idiom is set.
  public var scale: Int?
  /// The device (`idiom=pad`); nil: not set, which counts as a phone when the scale is set, as it did in
  /// ProxyBundle.
  public var idiom: Idiom?

  /// Options as the mount's options give them.
  /// - Parameters:
  ///   - languages: nil for the default list.
  ///   - userLanguages: as `Language.ofUser` tells them from the environment.
  ///   - scale: a positive number.
  public init(
    languages: [[UInt8]]? = nil, userLanguages: [[UInt8]] = [], scale: Int? = nil, idiom: Idiom? = nil
  ) {
    self.languages = languages
    self.userLanguages = userLanguages
    self.scale = scale
    self.idiom = idiom
  }

  /// The localizations to search, in order, each once, without `Base`.
  /// - Parameter developmentRegion: the bundle's.
  func localizations(developmentRegion: [UInt8]?) -> [[UInt8]] {
    let wanted = languages ?? userLanguages + [developmentRegion, Array("en".utf8)].compactMap { $0 }
    var names: [[UInt8]] = []
    for language in wanted {
      for name in Language.fallbacks(of: language) where !names.contains(name) { names.append(name) }
    }
    return names
  }

  /// Whether image names are looked up as UIImage did.
  var hasVariants: Bool { scale != nil || idiom != nil }
}
