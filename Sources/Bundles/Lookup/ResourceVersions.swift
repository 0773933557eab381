import Layers
import Posix

/// One layer's version of a file, which may be hidden by those of the layers above.
public struct ResourceVersion: Sendable {
  /// The names from the root of the layer.
  public let path: [[UInt8]]
  /// The index of the layer.
  public let layer: Int
  /// The status of the file.
  public let attributes: FileStatus
  /// The localization; nil for unlocalized files.
  public let localization: [UInt8]?
  /// The place in the order of the search, within the layer.
  fileprivate let order: Int
  private let file: MergedFile

  init(_ file: MergedFile, layer: Int, localization: [UInt8]?, order: Int) {
    path = file.parent.names + [file.name]
    self.layer = layer
    attributes = file.attributes
    self.localization = localization
    self.order = order
    self.file = file
  }

  /// Reads the content; nil if this is not a regular file or is larger than the limit.
  /// - Throws: ESTALE or ENOENT if the file was replaced or removed after the lookup; EACCES or EIO.
  public func content(limit: Int) throws(Errno) -> [UInt8]? { try file.content(limit: limit) }
}

extension ResourceLookup {
  /// Finds files in all layers and in all folders that a lookup searches, in the order of the search: each layer
  /// whole before the next, in it each folder, in it the names in order. What a whiteout or an opaque directory hides
  /// is not found.
  /// - Parameters:
  ///   - names: the names of the files, without variants.
  ///   - folder: the names below the resource folder.
  ///   - localization: As for `find`.
  public func versions(
    of names: [[UInt8]], in folder: [[UInt8]] = [], localization: [UInt8]? = nil
  ) throws(Errno) -> [ResourceVersion] {
    guard folder.allSatisfy(ResourceFolders.isEntryName) else { return [] }
    let layout = try layout()
    guard let folders = try ResourceFolders(of: stack, layout: layout, subfolder: folder, for: .unrestricted)
    else { return [] }
    var versions: [ResourceVersion] = []
    var searched: Set<[[UInt8]]> = []
    let localizations = try localizations(only: localization, layout: layout)
    for folder in try folders.all(localizations: localizations)
    where searched.insert(folder.path.names).inserted {
      for name in names where ResourceFolders.isEntryName(name) {
        for (file, layer) in try folder.path.versions(of: name) {
          versions.append(
            ResourceVersion(file, layer: layer, localization: folder.localization, order: versions.count))
        }
      }
    }
    return versions.sorted { ($0.layer, $0.order) < ($1.layer, $1.order) }
  }

  /// The Info.plist of each layer that has one, top first.
  public func infoPlistVersions() throws(Errno) -> [ResourceVersion] {
    let root = try MergedPath(rootOf: stack)
    var versions: [Int: ResourceVersion] = [:]
    for (order, path) in try layout().infoPlistPaths.enumerated() {
      guard let name = path.last, let folder = try root.directory(at: path.dropLast()) else { continue }
      for (file, layer) in try folder.versions(of: name) where versions[layer] == nil {
        versions[layer] = ResourceVersion(file, layer: layer, localization: nil, order: order)
      }
    }
    return versions.values.sorted { $0.layer < $1.layer }
  }
}

extension MergedPath {
  /// The files of a name in the merged directories, top first, each with the layer to which it belongs. Only the
  /// topmost one may be behind a symbolic link.
  fileprivate func versions(of name: [UInt8]) throws(Errno) -> [(MergedFile, layer: Int)] {
    var files: [(MergedFile, layer: Int)] = []
    var next = 0
    while next <= directory.parts[directory.parts.count - 1].layer {
      guard let (layer, attributes) = try file(name, from: next) else { break }
      if attributes.isRegular {
        files.append((MergedFile(parent: self, name: name, layer: layer, attributes: attributes), layer))
      } else if attributes.kind == .symbolicLink, next == 0, case .file(let file) = try resolve([name]) {
        files.append((file, layer))
      }
      next = layer + 1
    }
    return files
  }

  private func file(_ name: [UInt8], from layer: Int) throws(Errno) -> (layer: Int, FileStatus)? {
    try withCName(name) { name throws(Errno) in
      guard case .file(let found, let attributes) = try directory.lookup(name, from: layer) else {
        return nil
      }
      if layer > 0, try directory.hides(name, ofLayer: found) { return nil }
      return (found, attributes)
    }
  }
}
