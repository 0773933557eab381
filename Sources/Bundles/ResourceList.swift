import Layers
import Posix

/// One resource of a bundle's list.
public struct ListedResource: Sendable, Hashable {
  /// Where it is in the merged view: names from the root.
  public let path: [[UInt8]]
  /// The kind of entry; a symbolic link is listed as one.
  public let kind: FileKind
  /// The layer that the entry on top comes from, 0 on top.
  public let layer: Int
  /// The localization whose folder has it; nil: the unlocalized one.
  public let localization: [UInt8]?
}

extension ResourceLookup {
  /// The resources of a folder, as ProxyBundle merged the lists of Foundation: what any layer has, each path
  /// once and from the highest layer that has it, what marks hide left out; sorted by path.
  ///
  /// The folders are those that a lookup searches: the unlocalized one and those of all localizations in the
  /// list, then `Base`. (Foundation leaves out localizations after the first that has the type.)
  /// - Parameters:
  ///   - type: what names end with, after a dot, byte by byte (`png`, `tar.gz`); nil or nothing: all names.
  ///   - folder: names below the resource folder.
  ///   - localization: as for `find`.
  ///   - access: for whom it is.
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
    let names = try localizations(asked: localization, layout: layout)
    for folder in try folders.all(localizations: names) where listed.insert(folder.place.path).inserted {
      resources += try Self.resources(of: folder, suffix: suffix)
    }
    return resources.sorted { $0.path.joinedPath.lexicographicallyPrecedes($1.path.joinedPath) }
  }

  /// The localizations that any layer has, as their folders are called without `.lproj`, sorted; `Base` among
  /// them.
  public func localizations() throws(Errno) -> [[UInt8]] {
    let root = try MergedPath(rootOf: stack)
    guard let place = try root.directory(at: layout().resourceFolder) else { return [] }
    let listing = try place.directory.list()
    var names: [[UInt8]] = []
    for item in listing.items {
      let folder = listing.name(of: item)
      guard let name = Language.localization(ofFolder: folder) else { continue }
      guard item.kind == .directory || item.kind == .symbolicLink else { continue }
      if try place.directory(at: [folder]) != nil { names.append(name) }
    }
    return names.sorted { $0.lexicographicallyPrecedes($1) }
  }

  private static func resources(
    of folder: ResourceFolders.Folder, suffix: [UInt8]
  ) throws(Errno) -> [ListedResource] {
    let listing = try folder.place.list()
    var resources: [ListedResource] = []
    for item in listing.items {
      let name = listing.name(of: item)
      guard name.suffix(suffix.count).elementsEqual(suffix) else { continue }
      resources.append(
        ListedResource(
          path: folder.place.path + [name], kind: item.kind, layer: Int(item.layer),
          localization: folder.localization))
    }
    return resources
  }
}
