import Bundles
import Foundation

/// Options of the resource lookup; they correspond to mount options.
public struct LookupOptions: Sendable, Hashable {
  /// The device idiom of an image variant.
  public enum Idiom: Sendable, Hashable, CaseIterable {
    /// Variants with `~iphone` in their names.
    case phone
    /// Variants with `~ipad` in their names.
    case pad
  }

  /// The languages in order of preference (`languages=fr:en`), before the bundle's development region; nil stands for
  /// those of the user (LANGUAGE, or else the locale), then the development region, then `en`.
  ///
  /// They match the bundle's localizations as in Foundation on Apple's platforms: `nb` has `no`, `en-AU` has `en-GB`,
  /// `pt-BR` has `pt-PT` if there is no other Portuguese.
  public var languages: [String]?
  /// The screen scale (`scale=2`) by which image variants are chosen; positive, or nil if not set.
  public var scale: Int?
  /// The device idiom (`idiom=pad`) by which image variants are chosen; nil if not set.
  public var idiom: Idiom?
  /// Whether a ``LayeredBundle`` caches what its look-ups find, as long as nothing has changed in the layers. A bundle
  /// that is asked often then watches its directories with an instance of inotify(7). The default is true.
  public var cachesLookups: Bool

  /// Creates options; the defaults are those of a mount.
  public init(
    languages: [String]? = nil, scale: Int? = nil, idiom: Idiom? = nil, cachesLookups: Bool = true
  ) {
    self.languages = languages
    self.scale = scale
    self.idiom = idiom
    self.cachesLookups = cachesLookups
  }

  var resolved: ResourceOptions {
    let environment = ProcessInfo.processInfo.environment
    return ResourceOptions(
      languages: languages?.map { Array($0.utf8) },
      userLanguages: Language.ofUser { environment[$0] }, scale: scale.map { max(1, $0) },
      idiom: idiom.map { $0 == .pad ? .pad : .phone })
  }
}
