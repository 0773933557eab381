import Layers
import Posix

/// A resource, as a lookup found it.
public struct FoundResource: Sendable {
  /// Where it is in the merged view: names from the root, no symbolic link among them but for the last where
  /// that leads nowhere inside.
  public let path: [[UInt8]]
  /// What the merged view has there.
  public let entry: Entry
  /// The name under which it was found: that of the variant, and of the link where it is one. Its MIME type
  /// goes by this name.
  public let name: [UInt8]
  /// The localization whose folder had it; nil: the unlocalized one.
  public let localization: [UInt8]?
  /// The layer that the entry on top comes from, 0 on top.
  public let layer: Int
  /// The directory that has it; nil for a directory behind a link.
  let container: MergedDirectory?

  /// The attributes of the entry.
  public var attributes: FileStatus {
    switch entry {
    case .file(_, let attributes), .directory(_, let attributes): attributes
    }
  }
}

/// Finds the resources of a bundle in a stack of layers, by the rules of Foundation's and ProxyBundle's.
///
/// For each name in the order of an image's variants, and just the name for anything else, **each layer is
/// searched whole before the next**: the unlocalized folder, then each localization's, then `Base.lproj`. A
/// layer has what the merged view shows there as coming from it: so what a whiteout, an opaque mark or a file
/// of a higher layer hides is not found, and whatever is found is what a program sees at its path in the
/// mount. A directory is found in the highest layer that takes part in it.
///
/// Symbolic links are followed inside the merged view, at most 40, in all components: the path found is the
/// one that they lead to, while the order of the search goes by where the link is. A link that leads nowhere
/// inside (dangling, absolute, climbing out of the mount) hides what lies below it, as everywhere in the
/// mount, and is found as the link that it is; on the way to a resource it is a dead end.
///
/// Every lookup asks the layers anew; only Info.plist's facts are kept for as long as it does not change.
public final class ResourceLookup: Sendable {
  let stack: LayerStack
  /// How resources are looked up.
  public let options: ResourceOptions
  private let reader = InfoPlistCache()
  private let fixedLayout: BundleLayout?

  /// A lookup in a stack, by options.
  /// - Parameter layout: how the bundle is laid out; nil: as its main layer is at the time.
  public init(
    stack: LayerStack, options: ResourceOptions = ResourceOptions(), layout: BundleLayout? = nil
  ) {
    self.stack = stack
    self.options = options
    fixedLayout = layout
  }

  /// How the bundle is laid out now.
  public func layout() throws(Errno) -> BundleLayout {
    if let fixedLayout { return fixedLayout }
    return try BundleLayout(of: stack)
  }

  /// What the bundle's Info.plist says now.
  public func information() throws(Errno) -> BundleInformation {
    try reader.information(of: stack, layout: layout())
  }

  /// Finds a resource.
  /// - Parameters:
  ///   - path: decoded names below the resource folder; names that no directory can have are never found.
  ///   - localization: looks in the unlocalized folder and in this localization's alone, without fallbacks
  ///     and without `Base`, as Foundation does when it is given one.
  ///   - access: for whom it is.
  /// - Returns: nil without such a resource.
  public func find(
    _ path: [[UInt8]], localization: [UInt8]? = nil, for access: ResourceAccess = .unrestricted
  ) throws(Errno) -> FoundResource? {
    guard let name = path.last else { return nil }
    var search = try search(in: path.dropLast(), localization: localization, for: access)
    return try search?.find(name)
  }

  /// A search for several names of a folder, which opens what it needs once.
  /// - Returns: nil where the bundle has no such folder.
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

  /// The localizations that are searched now, in order, `Base` last.
  public func searchedLocalizations() throws(Errno) -> [[UInt8]] {
    try localizations(asked: nil, layout: layout())
  }

  /// What a path of the merged view leads to, symbolic links included.
  /// - Returns: nil where it leads nowhere.
  public func resource(at path: [[UInt8]]) throws(Errno) -> FoundResource? {
    guard let name = path.last, let reached = try MergedPath(rootOf: stack).reach(path) else { return nil }
    return try reached.resource(as: name, localization: nil)
  }

  /// Whether a path leads to a folder of resources: the unlocalized one or that of a localization.
  /// - Parameter path: as for `find`, or nothing for the resource folder itself.
  public func hasFolder(_ path: [[UInt8]], for access: ResourceAccess = .unrestricted) throws(Errno) -> Bool {
    var search = try search(in: path, for: access)
    return try search?.hasFolder() ?? false
  }

  /// The localizations to search, in order.
  /// - Parameter asked: the only one, if one was asked for.
  func localizations(asked: [UInt8]?, layout: BundleLayout) throws(Errno) -> [[UInt8]] {
    if let asked { return [asked] }
    var region: [UInt8]?
    if options.languages == nil {
      region = try reader.information(of: stack, layout: layout).developmentRegion.map { Array($0.utf8) }
    }
    return options.localizations(developmentRegion: region) + [Language.base]
  }
}
