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

  /// What comes first in a search for strings.
  public enum StringOrder: Sendable, Hashable, CaseIterable {
    /// Each layer is searched whole, in all its languages, before the next: as for files.
    case layerFirst
    /// Each language is searched in all layers before the next. So a substitution that has a text in English only does not
    /// hide the main bundle's French one.
    case languageFirst
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
  /// The order of a search for strings. The default is ``StringOrder/layerFirst``: what a substitution has is seen, as with
  /// files.
  public var stringOrder: StringOrder
  /// The width for which a ``LayeredBundle`` chooses texts that have variants for widths, in the unit of the tables; nil for
  /// the widest ones.
  public var textWidth: Int?
  /// Whether the substitutions of a ``LayeredBundle`` may be missing. One that is missing counts from the moment at which it is
  /// there. The default is false.
  public var allowsMissingSubstitutions: Bool

  /// Creates options; the defaults are those of a mount.
  public init(
    languages: [String]? = nil, scale: Int? = nil, idiom: Idiom? = nil, cachesLookups: Bool = true,
    stringOrder: StringOrder = .layerFirst, textWidth: Int? = nil, allowsMissingSubstitutions: Bool = false
  ) {
    self.languages = languages
    self.scale = scale
    self.idiom = idiom
    self.cachesLookups = cachesLookups
    self.stringOrder = stringOrder
    self.textWidth = textWidth
    self.allowsMissingSubstitutions = allowsMissingSubstitutions
  }

  var resolved: ResourceOptions {
    let environment = ProcessInfo.processInfo.environment
    return ResourceOptions(
      languages: languages?.map { Array($0.utf8) },
      userLanguages: Language.ofUser { environment[$0] }, scale: scale.map { max(1, $0) },
      idiom: idiom.map { $0 == .pad ? .pad : .phone }, stringOrder: stringOrder.resolved, textWidth: textWidth
    )
  }
}

extension LookupOptions.StringOrder {
  var resolved: ResourceOptions.StringOrder { self == .layerFirst ? .layer : .language }
}
