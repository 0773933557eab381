import Layers
import Posix

/// The result of a lookup.
public struct FoundResource: Sendable {
  /// The names from the root of the merged view. Only the last one may be a symbolic link, if it is dangling.
  public let path: [[UInt8]]
  /// The entry at the path.
  public let entry: Entry
  /// The name of the variant, before symbolic links are followed. It determines the MIME type.
  public let name: [UInt8]
  /// The localization; nil for unlocalized resources.
  public let localization: [UInt8]?
  /// The index of the entry's topmost layer.
  public let layer: Int
  /// The parent directory; nil for a directory behind a link.
  let container: MergedDirectory?

  /// The scale of an image, by the name of the variant.
  public var imageScale: Int { ImageVariants.scale(of: name) }

  /// The status of the entry.
  public var attributes: FileStatus { entry.attributes }
}

/// Finds the resources of a bundle in a stack of layers by the rules of Foundation and ProxyBundle.
///
/// The search tries the variants of an image in order; other names have no variants. For each variant, **all folders
/// of a layer precede the next layer**: unlocalized, each localization, `Base.lproj`. An entry belongs to the layer
/// from which the merged view takes it, so hidden entries are not found, and every result is visible at its path in
/// the mount. A directory belongs to its topmost layer.
///
/// Up to 40 symbolic links are followed inside the merged view. The result has the path of the target, but the
/// search order uses the layer of the link. A link without a target in the mount (dangling, absolute, or above the
/// root) hides entries in lower layers as usual and is itself the result; as a parent directory it does not resolve.
///
/// Only Info.plist and the list of localizations are cached, while nothing has changed them.
public final class ResourceLookup: Sendable {
  let stack: LayerStack
  /// The options of the search.
  public let options: ResourceOptions
  private let cache = InfoPlistCache()
  private let localizationCache = LocalizationCache()
  private let fixedLayout: BundleLayout?

  /// Creates a lookup; without a layout, each search determines it.
  public init(stack: LayerStack, options: ResourceOptions = ResourceOptions(), layout: BundleLayout? = nil) {
    self.stack = stack
    self.options = options
    fixedLayout = layout
  }

  /// The current layout.
  public func layout() throws(Errno) -> BundleLayout {
    if let fixedLayout { return fixedLayout }
    return try BundleLayout(of: stack)
  }

  /// The current Info.plist.
  public func infoPlist() throws(Errno) -> InfoPlist {
    try cache.infoPlist(of: stack, layout: layout())
  }

  /// Finds a resource by its path below the resource folder; nil if there is none. Invalid names are not found.
  /// - Parameter localization: If given, only it, its parents (`fr` for `fr-CA`) and the unlocalized folder are searched.
  public func find(
    _ path: [[UInt8]], localization: [UInt8]? = nil, for access: ResourceAccess = .unrestricted
  ) throws(Errno) -> FoundResource? {
    guard let name = path.last else { return nil }
    var search = try search(in: path.dropLast(), localization: localization, for: access)
    return try search?.find(name)
  }

  /// A search for several names of a folder, which shares open directories.
  /// - Returns: nil if the bundle has no such folder.
  public func search(
    in folder: [[UInt8]], localization: [UInt8]? = nil, for access: ResourceAccess = .unrestricted
  ) throws(Errno) -> ResourceSearch? {
    guard folder.allSatisfy(ResourceFolders.isEntryName) else { return nil }
    let layout = try layout()
    guard let folders = try ResourceFolders(of: stack, layout: layout, subfolder: folder, for: access) else {
      return nil
    }
    return ResourceSearch(lookup: self, layout: layout, folders: folders, localization: localization)
  }

  /// The localizations in search order, `Base` last. A language that the bundle lacks is among them, before those that
  /// serve for it.
  public func searchedLocalizations() throws(Errno) -> [[UInt8]] {
    let layout = try layout()
    let matcher = try matcher(layout)
    var names: [[UInt8]] = []
    for language in try languages(layout, matcher) {
      let found = matcher?.matches(for: language) ?? Language.fallbacks(of: language)
      for name in (matcher?.has(language) == true ? [] : [language]) + found where !names.contains(name) {
        names.append(name)
      }
    }
    return names + [Language.base]
  }

  /// Resolves a path of the merged view, following symbolic links.
  /// - Returns: nil if the path does not exist.
  public func resource(at path: [[UInt8]]) throws(Errno) -> FoundResource? {
    guard let name = path.last, let entry = try MergedPath(rootOf: stack).resolve(path) else { return nil }
    return try entry.resource(as: name, localization: nil)
  }

  /// Whether a path is a folder in any localization.
  /// - Parameter path: As for `find`; empty for the resource folder.
  public func hasFolder(_ path: [[UInt8]], for access: ResourceAccess = .unrestricted) throws(Errno) -> Bool {
    var search = try search(in: path, for: access)
    return try search?.hasFolder() ?? false
  }

  /// - Parameter others: the languages of catalogs, which may have no folders.
  func localizations(
    only localization: [UInt8]?, layout: BundleLayout, others: [[UInt8]] = []
  ) throws(Errno) -> [[UInt8]] {
    if let localization { return Language.fallbacks(of: localization) }
    var matcher = try matcher(layout)
    if let present = matcher, !others.isEmpty {
      let names = Set(present.names).union(others)
      if names.count > present.names.count { matcher = LanguageMatcher(names.sorted(by: precedes)) }
    }
    var names: [[UInt8]] = []
    for language in try languages(layout, matcher) {
      let found = matcher?.matches(for: language) ?? Language.fallbacks(of: language)
      for name in found where !names.contains(name) { names.append(name) }
    }
    return names + [Language.base]
  }

  private func languages(_ layout: BundleLayout, _ matcher: LanguageMatcher?) throws(Errno) -> [[UInt8]] {
    let region = try cache.infoPlist(of: stack, layout: layout).developmentRegion
    let preferred = options.preferredLanguages
    return (matcher?.ordered(preferred) ?? preferred)
      + options.ownLanguages(developmentRegion: region.map { Array($0.utf8) })
  }

  /// Matches languages with the present localizations; nil if they cannot be listed. Then the folders of a language and
  /// of its parents are tried, so that a layer that has failed does not keep the others from being searched.
  private func matcher(_ layout: BundleLayout) throws(Errno) -> LanguageMatcher? {
    guard let resources = try MergedPath(rootOf: stack).directory(at: layout.resourceFolder) else {
      return LanguageMatcher([])
    }
    do throws(Errno) { return try localizationCache.matcher(for: resources.directory, in: stack) } catch {
      if error == .deferred { throw error }
      return nil
    }
  }
}

private func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }
