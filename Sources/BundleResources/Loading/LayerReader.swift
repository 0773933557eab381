import ControlClient
import Bundles
import Foundation
import CLibrary
import Layers
import Posix

/// The layers of a bundle, read without a mount.
final class LayerReader: Sendable {
  /// With the ID of the mount in which a directory was opened; nil for archives, and before Linux 5.8.
  private typealias OpenLayer = (layer: Layer, mount: Int?)

  private let layers: [OpenLayer]
  private let resourceLookup: ResourceLookup
  private let contents = ContentCache(budget: 64 << 20)
  private let types = MIMETypes()
  /// nil if what was found is looked up again each time.
  let cache: LookupCache?
  /// The absolute paths of those that may be missing, and are.
  let missing: [[UInt8]]

  /// - Parameters:
  ///   - layers: with absolute paths, top first: directories, archives, or `ARCHIVE!/FOLDER`.
  ///   - caches: whether look-ups are cached where all layers can be watched: directories on local file systems, at the root of the
  ///     bundle.
  ///   - mayMiss: whether layers above the last one may be missing.
  init(
    layers given: [LaidPath], options: ResourceOptions, caches: Bool = false, mayMiss: Bool = false
  ) throws(PathError) {
    var (layers, missing): ([OpenLayer], [[UInt8]]) = ([], [])
    for (position, layer) in given.enumerated() {
      if mayMiss, position < given.count - 1, !Self.exists(layer.path) {
        missing.append(layer.path)
      } else {
        layers.append(try Self.layer(layer, index: layers.count, contents))
      }
    }
    (self.layers, self.missing) = (layers, missing)
    resourceLookup = ResourceLookup(stack: LayerStack(layers: layers.map(\.layer)), options: options)
    cache = caches && layers.allSatisfy { Self.canWatch($0.layer) } ? LookupCache() : nil
  }

  convenience init(
    paths: [[UInt8]], options: ResourceOptions, caches: Bool = false, mayMiss: Bool = false
  ) throws(PathError) {
    try self.init(
      layers: paths.map { LaidPath(atRoot: $0) }, options: options, caches: caches, mayMiss: mayMiss)
  }

  /// Whether there is something at the path of a layer, or at that of its archive.
  static func exists(_ path: [UInt8]) -> Bool {
    if ArchivePath(path) != nil { return true }
    do throws(Errno) {
      _ = try Descriptor.open(path, [.pathOnly])
      return true
    } catch { return error != .noSuchFileOrDirectory && error != .notDirectory }
  }

  /// - Parameter substitution: top first.
  /// - Throws: `URLError.badURL` for a URL that is not a file URL; what describes why a layer cannot be opened.
  convenience init(main: URL, substitution: [URL], options: LookupOptions) throws(URLError) {
    var paths: [[UInt8]] = []
    for url in substitution + [main] { paths.append(try url.filePath()) }
    do throws(PathError) {
      try self.init(
        paths: paths, options: options.resolved, caches: options.cachesLookups,
        mayMiss: options.allowsMissingSubstitutions)
    } catch {
      throw URLError(error)
    }
  }

  /// The lookup in the present layers.
  var lookup: ResourceLookup {
    // Reopens layers that were removed and created again; a missing one stays open.
    for (layer, mount) in layers {
      if let mount { _ = try? layer.folder?.reopen(mount: mount) }
    }
    return resourceLookup
  }

  /// The path of an entry in a layer: a file's own, or that of an entry of an archive, for users.
  func path(of names: [[UInt8]], layer: Int) -> [UInt8] { layers[layer].layer.path(of: names) }

  /// What is watched for changes.
  var watchedRoots: [WatchedRoot] {
    layers.map { layer, _ in
      layer.archive.map { .archive($0.archivePath) } ?? .directory(layer.laidPath.path)
    } + missing.map { .directory($0) }
  }

  /// An archive cannot: it is served as it was for a while after it was changed.
  private static func canWatch(_ layer: Layer) -> Bool {
    guard layer.folder != nil, layer.laidPath.place.isEmpty else { return false }
    do throws(Errno) { return try layer.unwatchableFileSystem() == nil } catch { return false }
  }

  /// Watches for changes of the layers, which are directories.
  /// - Throws: ESTALE if another directory than the layer's is at its path; what `LayerWatch` throws.
  func newWatch() throws(Errno) -> LayerWatch {
    let watch = try LayerWatch(layers: layers.map(\.layer.path))
    // Reopens layers.
    _ = lookup
    for (layer, _) in layers {
      let present = try Descriptor.open(layer.path, [.pathOnly, .directory]).attributes().identity
      if present != layer.root.identity { throw .staleFileHandle }
    }
    return watch
  }

  /// Whether a layer is an archive, whose entries are no files.
  func isArchive(_ layer: Int) -> Bool { layers[layer].layer.archive != nil }

  var isMainArchive: Bool { isArchive(layers.count - 1) }

  private static func layer(
    _ given: LaidPath, index: Int, _ contents: ContentCache
  ) throws(PathError) -> OpenLayer {
    let path = given.path
    if let archive = ArchivePath(path) {
      do throws(ArchiveError) {
        let layer = try archive.open(
          index: index, nil, contents, at: given.place, progress: { _, _ in })
        return (.archive(layer), nil)
      } catch {
        throw PathError(error, path: path)
      }
    }
    do throws(Errno) { return try directory(path, index: index, at: given.place) } catch {
      let isPresent = error == .notDirectory && (try? realPath(path)) != nil
      throw PathError(
        errno: error, path: path, reason: isPresent ? "neither a directory nor an archive" : nil,
        code: isPresent ? .cannotOpenFile : nil)
    }
  }

  private static func directory(
    _ path: [UInt8], index: Int, at place: [[UInt8]]
  ) throws(Errno) -> OpenLayer {
    let path = try realPath(path)
    var mount = 0
    let isKnown =
      (try? withCName(path) { name throws(Errno) in
        _ = try Descriptor.openNoSymlinks(name, mount: &mount)
      }) != nil
    // A cloned mount would keep the layer's file system busy.
    let layer = try DirectoryLayer(path: path, index: index, covered: nil, clonesMount: false, at: place)
    return (.directory(layer), isKnown ? mount : nil)
  }

  /// - Throws: ENOENT; EISDIR; EOPNOTSUPP for another kind of file; ESTALE if the file is replaced again and again;
  ///   EACCES and EIO from the layer.
  func open(_ url: ResourceURL) throws(Errno) -> OpenedResource {
    let lookup = lookup
    // Limited in case the file is replaced in an endless loop.
    for _ in 0..<64 {
      guard let found = try lookup.find(url.path, localization: url.localization) else {
        throw .noSuchFileOrDirectory
      }
      try Self.check(found, url)
      do throws(Errno) {
        return try OpenedResource(try found.open(), name: found.name, types: types)
      } catch {
        // The file was removed or replaced after the lookup.
        if error != .staleFileHandle && error != .noSuchFileOrDirectory { throw error }
      }
    }
    throw .staleFileHandle
  }

  /// - Parameter path: below the resource directory, as the URL of a bundle's file has it.
  /// - Throws: as `open(_:)`; ENOENT without such a file.
  func open(at path: [[UInt8]]) throws(Errno) -> OpenedResource {
    let lookup = lookup
    let path = try lookup.layout().resourceFolder + path
    guard let found = try lookup.resource(at: path), found.attributes.isRegular else {
      throw .noSuchFileOrDirectory
    }
    return try OpenedResource(try found.open(), name: found.name, types: types)
  }

  private static func check(_ found: FoundResource, _ url: ResourceURL) throws(Errno) {
    switch found.attributes.kind {
    case .regular: break
    // A mount has no directories with a localization in the name either.
    case .directory: throw url.localization == nil ? .isDirectory : .noSuchFileOrDirectory
    // The link is dangling or leads out of the bundle.
    case .symbolicLink: throw .noSuchFileOrDirectory
    default: throw .notSupported
    }
  }
}
