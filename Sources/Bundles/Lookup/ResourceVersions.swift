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
  /// What of the file is meant.
  public let part: Part
  private let file: MergedFile

  /// A part of a file.
  public enum Part: Sendable, Hashable {
    /// All of it.
    case whole
    /// What a catalog has in the language that is the localization.
    case language
    /// What a catalog has in its source language, for want of anything else.
    case source
  }

  init(_ file: MergedFile, layer: Int, localization: [UInt8]?, part: Part = .whole) {
    path = file.parent.names + [file.name]
    self.layer = layer
    attributes = file.attributes
    self.localization = localization
    self.part = part
    self.file = file
  }

  /// A part of a catalog.
  init(_ catalog: ResourceVersion, localization: [UInt8]?, part: Part) {
    self.init(catalog.file, layer: catalog.layer, localization: localization, part: part)
  }

  /// Reads the content; nil if this is not a regular file or is larger than the limit.
  /// - Throws: ESTALE or ENOENT if the file was replaced or removed after the lookup; EACCES or EIO.
  public func content(limit: Int) throws(Errno) -> [UInt8]? { try file.content(limit: limit) }
}

extension ResourceLookup {
  /// The Info.plist of each layer that has one, top first.
  public func infoPlistVersions() throws(Errno) -> [ResourceVersion] {
    let root = try MergedPath(rootOf: stack)
    var versions: [Int: ResourceVersion] = [:]
    for path in try layout().infoPlistPaths {
      guard let name = path.last, let folder = try root.directory(at: path.dropLast()) else { continue }
      for (file, layer) in try folder.versions(of: name) where versions[layer] == nil {
        versions[layer] = ResourceVersion(file, layer: layer, localization: nil)
      }
    }
    return versions.values.sorted { $0.layer < $1.layer }
  }
}

extension MergedPath {
  /// The files of a name in the merged directories, top first, each with the layer to which it belongs. Only the
  /// topmost one may be behind a symbolic link.
  func versions(of name: [UInt8]) throws(Errno) -> [(MergedFile, layer: Int)] {
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
