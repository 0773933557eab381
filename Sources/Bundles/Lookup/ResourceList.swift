import Layers
import Posix

/// A resource in a listing.
public struct ListedResource: Sendable, Hashable {
  /// The names from the root of the merged view.
  public let path: [[UInt8]]
  /// The kind of the entry; symbolic links are not followed.
  public let kind: FileKind
  /// The index of the entry's topmost layer.
  public let layer: Int
  /// The localization; nil for unlocalized resources.
  public let localization: [UInt8]?
}

extension ResourceLookup {
  /// Lists the resources of a folder in the merged view, sorted by path.
  ///
  /// The listing covers the folders that a lookup searches: unlocalized, each localization, `Base`. (Foundation
  /// omits the localizations after the first one with a match.)
  /// - Parameters:
  ///   - type: The extension, compared by bytes (`png`, `tar.gz`); nil or empty for all names.
  ///   - folder: The names below the resource folder.
  ///   - localization: As for `find`.
  public func list(
    type: [UInt8]? = nil, in folder: [[UInt8]] = [], localization: [UInt8]? = nil,
    for access: ResourceAccess = .unrestricted
  ) throws(Errno) -> [ListedResource] {
    guard folder.allSatisfy(ResourceFolders.isEntryName) else { return [] }
    let layout = try layout()
    guard let folders = try ResourceFolders(of: stack, layout: layout, subfolder: folder, for: access) else {
      return []
    }
    let suffix = type.flatMap { $0.isEmpty ? nil : [UInt8(ascii: ".")] + $0 } ?? []
    var resources: [ListedResource] = []
    var listed: Set<[[UInt8]]> = []
    let names = try localizations(only: localization, layout: layout)
    for folder in try folders.all(localizations: names) where listed.insert(folder.path.names).inserted {
      resources += try Self.resources(of: folder, suffix: suffix)
    }
    return resources.sorted { $0.path.joinedPath.lexicographicallyPrecedes($1.path.joinedPath) }
  }

  /// The localizations in all layers, including `Base`, sorted: the folders' names without `.lproj`.
  public func localizations() throws(Errno) -> [[UInt8]] {
    let root = try MergedPath(rootOf: stack)
    guard let resources = try root.directory(at: layout().resourceFolder) else { return [] }
    var names: [[UInt8]] = []
    for name in try resources.directory.localizations()
    where try resources.directory(at: [name + Language.folderSuffix]) != nil { names.append(name) }
    return names.sorted { $0.lexicographicallyPrecedes($1) }
  }

  private static func resources(
    of folder: ResourceFolders.Folder, suffix: [UInt8]
  ) throws(Errno) -> [ListedResource] {
    let listing = try folder.path.list()
    var resources: [ListedResource] = []
    for item in listing.items {
      let name = listing.name(of: item)
      guard name.suffix(suffix.count).elementsEqual(suffix) else { continue }
      resources.append(
        ListedResource(
          path: folder.path.names + [name], kind: item.kind, layer: Int(item.layer),
          localization: folder.localization))
    }
    return resources
  }
}
