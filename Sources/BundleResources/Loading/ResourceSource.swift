import Bundles
import Foundation
import FoundationNetworking
import Posix
import Routing

/// A source of resources for `rsrc:` URLs: a bundlefs mount, or a bundle with its substitutions.
///
/// Both kinds find the same resources. `rsrc:///DIR/NAME` is the resource NAME in the subdirectory DIR: in the
/// substitutions first, then in the main bundle; in each of them unlocalized first, then by language.
/// `rsrc:///NAME?localization=fr` selects one localization. Lookups are not cached, so that each load sees the
/// current files.
public final class ResourceSource: Sendable {
  private enum Backend: Sendable {
    case mount(MountedBundle)
    case layers(LayerReader)
    case bundle(LayeredBundle)
  }

  private let backend: Backend
  /// The threads for URLSession's loads.
  let loaders = LoaderPool(limit: 8)

  /// Creates a source that loads from a mount.
  ///
  /// While nothing is mounted there, loads fail with `URLError.resourceUnavailable`.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which the bundle is or will be mounted.
  ///   - scheme: the mount's option `resource_scheme`; case-insensitive.
  /// - Throws: `URLError.badURL` if the mount point is not a file URL.
  public init(mountPoint: URL, scheme: String = "rsrc") throws(URLError) {
    backend = .mount(
      MountedBundle(mountPoint: try mountPoint.filePath(), scheme: Array(scheme.lowercased().utf8)))
  }

  /// Creates a source that loads from a bundle with substitutions, without a mount.
  ///
  /// If one of the directories is removed and created again, loads use the new one, as in a mount.
  /// - Parameters:
  ///   - main: the file URL of the bundle's directory, of a zip archive, or of a folder in one
  ///     (`app.ipa!/Payload/App.app`).
  ///   - substitution: the file URLs of the directories or archives that override it, in descending order of
  ///     precedence.
  ///   - options: options of the lookup.
  /// - Throws: `URLError.badURL` for a URL that is not a file URL; `.fileDoesNotExist`, `.noPermissionsToReadFile`
  ///   and the like if a directory cannot be opened.
  public init(
    main: URL, substitution: [URL] = [], options: LookupOptions = LookupOptions()
  ) throws(URLError) {
    backend = .layers(try LayerReader(main: main, substitution: substitution, options: options))
  }

  /// Creates a source that loads a bundle's resources, with the bundle's options.
  public init(bundle: LayeredBundle) { backend = .bundle(bundle) }

  /// Loads a resource synchronously. The URL's scheme is ignored.
  /// - Throws: `URLError`: `.badURL` for a host, a `..` or a NUL in the URL; `.fileDoesNotExist`;
  ///   `.fileIsDirectory`; `.noPermissionsToReadFile`; `.cannotOpenFile` for a device, fifo or socket;
  ///   `.dataLengthExceedsMaximum` for a file that does not fit in memory; `.resourceUnavailable` for any other
  ///   error, such as an unmounted bundle. If a system call failed, `NSUnderlyingErrorKey` has its POSIX error.
  public func load(_ url: URL) throws(URLError) -> LoadedResource {
    try loadUncancelled(url, .all)
  }

  /// Finds a resource and describes it without loading its content.
  /// - Throws: as ``load(_:)``.
  public func describe(_ url: URL) throws(URLError) -> LoadedResource {
    try loadUncancelled(url, .description)
  }

  private func loadUncancelled(_ url: URL, _ part: Part) throws(URLError) -> LoadedResource {
    if let resource = try load(url, part: part, shouldContinue: { true }) { return resource }
    throw URLError(.cancelled)
  }

  enum Part: Sendable {
    case description
    case all
  }

  /// - Parameter shouldContinue: called between reads; false cancels the load.
  /// - Returns: nil if cancelled.
  func load(_ url: URL, part: Part, shouldContinue: () -> Bool) throws(URLError) -> LoadedResource? {
    let resource = try ResourceURL(url)
    do throws(Errno) {
      let opened = try open(resource)
      switch part {
      case .description: return try opened.description(as: url)
      case .all: return try opened.load(as: url, shouldContinue: shouldContinue)
      }
    } catch {
      throw URLError(error, url)
    }
  }

  private func open(_ url: ResourceURL) throws(Errno) -> OpenedResource {
    switch backend {
    case .mount(let bundle): try bundle.open(url)
    case .layers(let layers): try layers.open(url)
    case .bundle(let bundle): try bundle.layers().open(url)
    }
  }
}

extension ResourceURL {
  fileprivate init(_ url: URL) throws(URLError) {
    let parts: RouteURL
    do throws(RoutingError) { parts = try RouteURL(Array(url.absoluteString.utf8)) } catch {
      throw URLError(.badURL, url, error.description)
    }
    do throws(ResourceURLError) {
      self = try ResourceURL(
        host: parts.host, segments: parts.segments, localization: parts.parameter("localization"))
    } catch {
      throw URLError(.badURL, url, error.description)
    }
  }
}
