import Layers
import Posix

/// A search for resources in one folder, which keeps directories open between lookups.
public struct ResourceSearch: Sendable {
  private let lookup: ResourceLookup
  private let layout: BundleLayout
  private let folders: ResourceFolders
  private let localization: [UInt8]?
  /// Cached after the first lookup.
  private var unlocalized: ResourceFolders.Folder??
  /// Cached after the first lookup that needs it.
  private var localized: [ResourceFolders.Folder]?

  init(lookup: ResourceLookup, layout: BundleLayout, folders: ResourceFolders, localization: [UInt8]?) {
    self.lookup = lookup
    self.layout = layout
    self.folders = folders
    self.localization = localization
  }

  /// Finds a resource by name. Directories have no variants.
  public mutating func find(_ name: [UInt8]) throws(Errno) -> FoundResource? {
    guard ResourceFolders.isEntryName(name) else { return nil }
    for candidate in ImageVariants.candidates(for: name, options: lookup.options) {
      guard let found = try findExactly(candidate) else { continue }
      if candidate == name || !found.attributes.isDirectory { return found }
    }
    return nil
  }

  mutating func hasFolder() throws(Errno) -> Bool {
    if try unlocalizedFolder() != nil { return true }
    return try !localizedFolders().isEmpty
  }

  /// Finds a name in the topmost layer and, within the layer, in the first folder.
  private mutating func findExactly(_ name: [UInt8]) throws(Errno) -> FoundResource? {
    var best: Candidate?
    if let folder = try unlocalizedFolder() { best = try Candidate(name, in: folder, above: nil) }
    if best?.entry.layer != 0 {
      for folder in try localizedFolders() {
        if let better = try Candidate(name, in: folder, above: best?.entry.layer) { best = better }
      }
    }
    return try best?.resource()
  }

  private mutating func unlocalizedFolder() throws(Errno) -> ResourceFolders.Folder? {
    if let unlocalized { return unlocalized }
    let folder = try folders.unlocalized()
    unlocalized = .some(folder)
    return folder
  }

  private mutating func localizedFolders() throws(Errno) -> [ResourceFolders.Folder] {
    if let localized { return localized }
    var all: [ResourceFolders.Folder] = []
    for name in try lookup.localizations(only: localization, layout: layout) {
      all += try folders.localized(name)
    }
    localized = all
    return all
  }
}

private struct Candidate {
  let name: [UInt8]
  let folder: ResourceFolders.Folder
  let entry: Entry

  /// nil if there is no entry in a layer above the bound.
  init?(_ name: [UInt8], in folder: ResourceFolders.Folder, above bound: Int?) throws(Errno) {
    if let bound, folder.path.layer >= bound { return nil }
    guard let entry = try folder.path.entry(name) else { return nil }
    self.name = name
    self.folder = folder
    self.entry = entry
    if let bound, entry.layer >= bound { return nil }
  }

  /// The resource, after symbolic links. A link to an ancestor is not followed, because a recursive client would
  /// not terminate.
  func resource() throws(Errno) -> FoundResource {
    if case .file(_, let attributes) = entry, attributes.kind == .symbolicLink,
      let target = try folder.path.resolve([name]), !target.isAncestor(of: folder.path)
    {
      return try target.resource(as: name, localization: folder.localization)
    }
    return FoundResource(
      path: folder.path.names + [name], entry: entry, name: name, localization: folder.localization,
      layer: entry.layer, container: folder.path.directory)
  }
}

extension ResolvedEntry {
  fileprivate func isAncestor(of path: MergedPath) -> Bool {
    guard case .directory(let directory) = self else { return false }
    return path.names.starts(with: directory.names)
  }

  /// - Parameter name: The name before symbolic links are followed.
  func resource(as name: [UInt8], localization: [UInt8]?) throws(Errno) -> FoundResource {
    switch self {
    case .file(let file):
      FoundResource(
        path: file.parent.names + [file.name], entry: .file(layer: file.layer, file.attributes), name: name,
        localization: localization, layer: file.layer, container: file.parent.directory)
    case .directory(let path):
      FoundResource(
        path: path.names, entry: .directory(path.directory, try path.directory.attributes()), name: name,
        localization: localization, layer: path.layer, container: nil)
    }
  }
}

extension Entry {
  var layer: Int {
    switch self {
    case .file(let layer, _): layer
    case .directory(let directory, _): directory.top.layer
    }
  }
}
