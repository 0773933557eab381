import Layers
import Posix

/// A search for resources of one folder: what it opened for one name serves the next ones.
public struct ResourceSearch: Sendable {
  private let lookup: ResourceLookup
  private let layout: BundleLayout
  private let folders: ResourceFolders
  private let localization: [UInt8]?
  /// The folder, if there is one, once it was asked for.
  private var unlocalized: ResourceFolders.Folder??
  /// The folders, in order, once they were asked for.
  private var localized: [ResourceFolders.Folder]?

  init(lookup: ResourceLookup, layout: BundleLayout, folders: ResourceFolders, localization: [UInt8]?) {
    self.lookup = lookup
    self.layout = layout
    self.folders = folders
    self.localization = localization
  }

  /// Finds a resource by its name, as ``ResourceLookup/find(_:localization:for:)`` does. An image's variant is a
  /// file; a directory is found only by its own name.
  public mutating func find(_ name: [UInt8]) throws(Errno) -> FoundResource? {
    guard ResourceFolders.isEntryName(name) else { return nil }
    for candidate in ImageVariants.candidates(for: name, options: lookup.options) {
      guard let found = try findExactly(candidate) else { continue }
      if candidate == name || !found.attributes.isDirectory { return found }
    }
    return nil
  }

  /// Whether the folder is there, in any place.
  mutating func hasFolder() throws(Errno) -> Bool {
    if try unlocalizedFolder() != nil { return true }
    return try !localizedFolders().isEmpty
  }

  /// Finds a name: of the folders that have it, in the highest layer, the first.
  private mutating func findExactly(_ name: [UInt8]) throws(Errno) -> FoundResource? {
    var best: Candidate?
    if let folder = try unlocalizedFolder() { best = try Candidate(name, in: folder, above: nil) }
    if best?.layer != 0 {
      for folder in try localizedFolders() {
        if let better = try Candidate(name, in: folder, above: best?.layer) { best = better }
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
    for name in try lookup.localizations(asked: localization, layout: layout) {
      all += try folders.localized(name)
    }
    localized = all
    return all
  }
}

/// A name that a folder has.
private struct Candidate {
  let name: [UInt8]
  let folder: ResourceFolders.Folder
  let entry: Entry

  /// - Parameter bound: only a layer above this one counts; nil: any.
  init?(_ name: [UInt8], in folder: ResourceFolders.Folder, above bound: Int?) throws(Errno) {
    if let bound, folder.place.layer >= bound { return nil }
    guard let entry = try folder.place.entry(name) else { return nil }
    self.name = name
    self.folder = folder
    self.entry = entry
    if let bound, layer >= bound { return nil }
  }

  var layer: Int { entry.layer }

  /// The resource, behind a link if it is one that leads somewhere. A link to a directory above itself leads
  /// nowhere: whoever follows it would never come to an end.
  func resource() throws(Errno) -> FoundResource {
    if case .file(_, let attributes) = entry, attributes.kind == .symbolicLink,
      let reached = try folder.place.reach([name]), !reached.isAbove(folder.place)
    {
      return try reached.resource(as: name, localization: folder.localization)
    }
    return FoundResource(
      path: folder.place.path + [name], entry: entry, name: name, localization: folder.localization,
      layer: entry.layer, container: folder.place.directory)
  }
}

extension Reached {
  /// Whether it is a directory that has the place in it, or is it.
  fileprivate func isAbove(_ place: MergedPath) -> Bool {
    guard case .directory(let reached) = self else { return false }
    return place.path.starts(with: reached.path)
  }

  /// - Parameter name: by which it was found.
  func resource(as name: [UInt8], localization: [UInt8]?) throws(Errno) -> FoundResource {
    switch self {
    case .file(let file):
      FoundResource(
        path: file.place.path + [file.name], entry: .file(layer: file.layer, file.attributes), name: name,
        localization: localization, layer: file.layer, container: file.place.directory)
    case .directory(let place):
      FoundResource(
        path: place.path, entry: .directory(place.directory, try place.directory.attributes()), name: name,
        localization: localization, layer: place.layer, container: nil)
    }
  }
}

extension Entry {
  /// The layer that the topmost entry comes from, 0 on top.
  var layer: Int {
    switch self {
    case .file(let layer, _): layer
    case .directory(let directory, _): directory.top.layer
    }
  }
}
