import Bundles
import ControlClient
import Foundation
import Posix
import Routing

/// A bundle with substitutions, which has the methods of Foundation's `Bundle`.
///
/// ```swift
/// let bundle = try LayeredBundle(main: URL(filePath: "App.app"), substitution: [URL(filePath: "fixes.zip")])
/// print(bundle.localizedString(forKey: "title"))
/// let logo = try bundle.data(forResource: "logo", withExtension: "png")
/// ```
///
/// Each substitution is searched whole before the next one, and all before the main bundle. Tables of strings and
/// Info.plist are merged key by key. Unlike Foundation's, the methods show the present files: what was found, or missing,
/// is cached only until something changes in a layer. For the differences see <doc:LayeredBundles>.
public final class LayeredBundle: Sendable {
  /// The file URL of the main bundle's directory, or of its archive; for the bundle of a mount, of the mount point.
  public let bundleURL: URL
  /// The tables that were parsed, and Info.plist.
  let tables = ParsedFileCache<ParsedTables>()
  let infoPlists = ParsedFileCache<InfoPlistContent>()
  /// What the bundle is called in the URLs of its files in archives.
  let name = NamedBundles.newName()
  /// The threads for URLSession's loads.
  let loaders = LoaderPool(limit: 8)
  /// For ``tableErrors``.
  let queries = Locked<Set<TableQuery>>([])
  private let backing: BundleLayers

  /// Opens a bundle with substitutions, without a mount.
  ///
  /// If one of the directories is removed and created again, or an archive replaced, the bundle uses the new one.
  /// - Parameters:
  ///   - main: the file URL of the bundle's directory, of a zip archive, or of a folder in one
  ///     (`app.ipa!/Payload/App.app`).
  ///   - substitution: the file URLs of the directories or archives that override it, in descending order of
  ///     precedence.
  ///   - options: options of the lookup.
  /// - Throws: `URLError.badURL` for a URL that is not a file URL; `.fileDoesNotExist`, `.noPermissionsToReadFile` and the
  ///   like if a directory or an archive cannot be opened, `.cannotOpenFile` for any other file.
  public init(
    main: URL, substitution: [URL] = [], options: LookupOptions = LookupOptions()
  ) throws(URLError) {
    bundleURL = URL(path: try main.filePath(), isDirectory: true)
    backing = .fixed(try FixedLayers(main: main, substitutions: substitution, options: options))
  }

  /// Opens the bundle of a mount, with the layers and the options of the mount.
  ///
  /// The layers are opened by their paths, so the program needs access to them. A change of the mount's layers is
  /// seen within a second, or at once after ``invalidateCaches()``. While nothing is mounted, nothing is found.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which the bundle is mounted.
  ///   - cachesLookups: as ``LookupOptions/cachesLookups``.
  ///   - stringOrder: as ``LookupOptions/stringOrder``.
  /// - Throws: `URLError.badURL` for a URL that is not a file URL; `.resourceUnavailable` where nothing is mounted or
  ///   the mount's daemon is dead; as the other initializer if a layer cannot be opened.
  public init(
    mountPoint: URL, cachesLookups: Bool = true, stringOrder: LookupOptions.StringOrder = .layerFirst
  ) throws(URLError) {
    let mount = MountLayers(
      mountPoint: try mountPoint.filePath(), caches: cachesLookups, stringOrder: stringOrder.resolved)
    bundleURL = URL(path: mount.mountPoint, isDirectory: true)
    backing = .mount(mount)
    do throws(PathError) { _ = try mount.reader() } catch { throw URLError(error) }
  }

  deinit { NamedBundles.remove(name) }

  /// The layers now.
  /// - Throws: ENOTCONN if nothing is mounted; what opening a layer answers.
  func layers() throws(Errno) -> LayerReader {
    switch backing {
    case .fixed(let layers): return layers.reader
    case .mount(let mount):
      do throws(PathError) { return try mount.reader() } catch { throw error.errno }
    }
  }

  var isMount: Bool { if case .mount = backing { true } else { false } }

  /// Watches for changes.
  func watcher() throws(Errno) -> BundleWatcher {
    switch backing {
    case .fixed(let layers): return try layers.watcher()
    case .mount(let mount):
      // Fails where nothing is mounted.
      _ = try layers()
      let control = try StatusClient.read(.controlName, at: mount.mountPoint)
      return try BundleWatcher(roots: [.mount(mount.mountPoint, control: control)])
    }
  }

  /// The file URLs of the directories and archives that override the main bundle, in descending order of precedence;
  /// empty for the bundle of a mount.
  public var substitutions: [URL] {
    if case .fixed(let layers) = backing { layers.substitutions } else { [] }
  }

  /// Replaces the substitutions.
  ///
  /// Each look-up, also in other tasks, is made in the former ones or in the new ones. If one cannot be opened, the former
  /// ones stay. ``changes()`` has an element for the replacement, whose paths are nil, and goes on with the new ones.
  /// - Parameter substitution: the file URLs of the directories or archives, in descending order of precedence.
  /// - Throws: `URLError` as `init(main:substitution:options:)`; `.unsupportedURL` for the bundle of a mount, which has the
  ///   mount's layers: the command `bundlefs layers` changes them.
  public func setSubstitutions(_ substitution: [URL]) throws(URLError) {
    guard case .fixed(let layers) = backing else {
      throw URLError(.unsupportedURL, bundleURL, "the layers of a mount are changed by 'bundlefs layers'")
    }
    try layers.set(substitution)
  }

  /// Forgets what was parsed and found. This is needed only after a change that left a file's size and times alone.
  public func invalidateCaches() {
    tables.removeAll()
    infoPlists.removeAll()
    switch backing {
    case .fixed(let layers): layers.reader.cache?.removeAll()
    case .mount(let mount): mount.invalidate()
    }
  }

  /// The file URL of a resource; for one in an archive, which has no file, a URL that names this bundle and that
  /// URLSession and each ``ResourceSource`` load from it.
  /// - Parameter layers: those in which it was found.
  func url(of path: [[UInt8]], layer: Int, isDirectory: Bool, in layers: LayerReader) -> URL? {
    if case .mount(let mount) = backing {
      let path = ([mount.mountPoint] + path).joined(separator: [UInt8(ascii: "/")])
      return URL(path: Array(path), isDirectory: isDirectory)
    }
    if layers.isArchive(layer) { return resourceURL(of: path, layers) }
    return URL(path: layers.path(of: path, layer: layer), isDirectory: isDirectory)
  }

  /// Opens the file of a URL that this bundle gave. A document's own references to resources, which are relative to its
  /// URL, may name one that is localized.
  func open(_ url: ResourceURL) throws(Errno) -> OpenedResource {
    let layers = try layers()
    if url.localization == nil {
      do throws(Errno) { return try layers.open(at: url.path) } catch {
        if error != .noSuchFileOrDirectory && error != .staleFileHandle { throw error }
      }
    }
    return try layers.open(url)
  }

  private func resourceURL(of path: [[UInt8]], _ layers: LayerReader) -> URL? {
    guard let folder = try? layers.lookup.layout().resourceFolder, path.starts(with: folder) else {
      return nil
    }
    NamedBundles.add(self)
    let encoded = path.dropFirst(folder.count).map { PercentCoding.encoded(path: $0) }.joined(separator: "/")
    return URL(string: "\(ResourceURLProtocol.scheme(of: self))://\(name)/\(encoded)")
  }
}

/// Where a bundle's layers come from.
private enum BundleLayers: Sendable {
  case fixed(FixedLayers)
  case mount(MountLayers)
}

extension URL {
  /// The file URL of a path.
  init(path: [UInt8], isDirectory: Bool) {
    self = path.withUnsafeBufferPointer { bytes in
      (Array(bytes) + [0]).withUnsafeBytes { bytes in
        let start = bytes.assumingMemoryBound(to: CChar.self).baseAddress
        guard let start else { return URL(fileURLWithPath: "/") }
        return URL(fileURLWithFileSystemRepresentation: start, isDirectory: isDirectory, relativeTo: nil)
      }
    }
  }
}
