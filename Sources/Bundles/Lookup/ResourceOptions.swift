/// The options of a resource lookup.
public struct ResourceOptions: Sendable, Hashable {
  /// The device family of an image variant.
  public enum Idiom: String, Sendable, CaseIterable {
    case phone
    case pad

    /// The name in tables and catalogs of strings.
    public var device: String { self == .phone ? "iphone" : "ipad" }

    var suffix: String { self == .phone ? "~iphone" : "~ipad" }
  }

  /// What comes first in a search for strings.
  public enum StringOrder: Sendable, Hashable {
    /// Each layer is searched whole before the next.
    case layer
    /// Each language is searched in all layers before the next.
    case language
  }

  /// The languages in order (`languages=fr:en`), before the bundle's development region; nil for ``userLanguages``, then
  /// the development region, then `en`.
  public var languages: [[UInt8]]?
  /// The languages of the mounting user, used if `languages` is nil.
  public var userLanguages: [[UInt8]]
  /// The scale of the screen (`scale=2`). If nil and the idiom is set, 1.
  public var scale: Int?
  /// The device family (`idiom=pad`). If nil and the scale is set, `phone`, as in ProxyBundle.
  public var idiom: Idiom?
  /// The order of a search for strings.
  public var stringOrder: StringOrder
  /// The width for which texts are chosen (NSStringVariableWidthRuleType); nil for the widest.
  public var textWidth: Int?

  /// Creates options. The scale is positive; for `userLanguages` see ``Language/ofUser(environment:)``.
  public init(
    languages: [[UInt8]]? = nil, userLanguages: [[UInt8]] = [], scale: Int? = nil, idiom: Idiom? = nil,
    stringOrder: StringOrder = .layer, textWidth: Int? = nil
  ) {
    self.languages = languages
    self.userLanguages = userLanguages
    self.scale = scale
    self.idiom = idiom
    self.stringOrder = stringOrder
    self.textWidth = textWidth
  }

  /// The languages that the user or the option prefers, in order.
  var preferredLanguages: [[UInt8]] { languages ?? userLanguages }

  /// The bundle's own languages, which come last, so that a text in no other is found.
  /// - Parameter developmentRegion: nil stands for `en`, as in Foundation.
  func ownLanguages(developmentRegion: [UInt8]?) -> [[UInt8]] {
    let english = Array("en".utf8)
    return languages == nil ? [developmentRegion, english].compactMap { $0 } : [developmentRegion ?? english]
  }

  var hasVariants: Bool { scale != nil || idiom != nil }
}
