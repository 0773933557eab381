import Bundles
import Foundation

/// How resources are looked up in a bundle, as by the options of a mount.
public struct LookupOptions: Sendable, Hashable {
  /// The kind of device that an image variant is for.
  public enum Idiom: Sendable, Hashable, CaseIterable {
    /// Variants with `~iphone` in their names.
    case phone
    /// Variants with `~ipad` in their names.
    case pad
  }

  /// The localizations in order of preference (`languages=fr:en`), such as `pt-BR`, which falls to `pt`; nil
  /// for those of the user's locale, then the bundle's development region, then `en`.
  public var languages: [String]?
  /// The scale of the screen (`scale=2`), a positive number, by which variants of images are chosen; nil: not
  /// set.
  public var scale: Int?
  /// The device (`idiom=pad`) by which variants of images are chosen; nil: not set.
  public var idiom: Idiom?

  /// Options; those of a mount that has none are the default.
  public init(languages: [String]? = nil, scale: Int? = nil, idiom: Idiom? = nil) {
    self.languages = languages
    self.scale = scale
    self.idiom = idiom
  }

  /// The options as the lookup takes them.
  var resolved: ResourceOptions {
    let environment = ProcessInfo.processInfo.environment
    return ResourceOptions(
      languages: languages?.map { Array($0.utf8) },
      userLanguages: Language.ofUser { environment[$0] }, scale: scale.map { max(1, $0) },
      idiom: idiom.map { $0 == .pad ? .pad : .phone })
  }
}
