import Bundles
import Foundation
import Posix
import Routing

/// A source of resources for `rsrc:` URLs: a bundlefs mount, or a bundle with its substitutions.
///
/// Both kinds find the same resources. `rsrc:///DIR/NAME` is the resource NAME in the subdirectory DIR: in the
/// substitutions first, then in the main bundle; in each of them unlocalized first, then by language.
/// `rsrc:///NAME?localization=fr` selects one localization. A URL that a ``LayeredBundle`` gave for a file in an archive
/// names that bundle, `rsrc://bundle-1/NAME`, and is loaded from it by each source. Lookups are not cached, so that each load sees the
/// current files.
public final class ResourceSource: Sendable {
  private enum Backend: Sendable {
    case mount(MountedBundle)
    case layers(LayerReader)
    case bundle(LayeredBundle)
  }

  private let backend: Backend
  /// The threads for URLSession's loads.
  let loaders: LoaderPool

  /// Creates a source that loads from a mount.
  ///
  /// While nothing is mounted there, loads fail with `URLError.resourceUnavailable`.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which the bundle is or will be mounted.
  ///   - scheme: the mount's option `resource_scheme`; case-insensitive.
  /// - Throws: `URLError.badURL` if the mount point is not a file URL.
  public init(mountPoint: URL, scheme: String = "rsrc") throws(URLError) {
    loaders = LoaderPool(limit: 8)
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
    loaders = LoaderPool(limit: 8)
    backend = .layers(try LayerReader(main: main, substitution: substitution, options: options))
  }

  /// Creates a source that loads a bundle's resources, with the bundle's options.
  public init(bundle: LayeredBundle) {
    loaders = bundle.loaders
    backend = .bundle(bundle)
  }

  func isBundle(_ bundle: LayeredBundle) -> Bool {
    if case .bundle(let own) = backend { own === bundle } else { false }
  }

  /// - Throws: `URLError.resourceUnavailable` where no bundle is mounted whose resources have the source's scheme.
  func checkMount() throws(URLError) {
    guard case .mount(let bundle) = backend else { return }
    do throws(PathError) { try bundle.check() } catch { throw URLError(error) }
  }

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

  /// Loads a part of a resource synchronously.
  /// - Parameters:
  ///   - url: as for ``load(_:)``.
  ///   - range: the bytes; what of them the content has is loaded.
  /// - Throws: as ``load(_:)``.
  public func load(_ url: URL, range: Range<Int>) throws(URLError) -> LoadedResource {
    try loadUncancelled(url, .range(RequestedRange(range)))
  }

  /// Opens a resource to read its content piece by piece, which needs little memory for a file of any size.
  /// - Parameters:
  ///   - url: as for ``load(_:)``.
  ///   - range: the bytes to read; nil for all.
  /// - Throws: as ``load(_:)``; `.cancelled` as soon as the task is cancelled.
  public func bytes(_ url: URL, range: Range<Int>? = nil) async throws(URLError) -> ResourceBytes {
    try await loaders.result { [self] in
      Result { () throws(URLError) in
        try opened(try ResourceAddress(url), url) { opened throws(Errno) in
          try opened.bytes(as: url, range: range.map(RequestedRange.init), loaders)
        }
      }
    }.get()
  }

  private func loadUncancelled(_ url: URL, _ part: Part) throws(URLError) -> LoadedResource {
    if let resource = try load(url, part: part, shouldContinue: { true }) { return resource }
    throw URLError(.cancelled)
  }

  enum Part: Sendable {
    case description
    case all
    case range(RequestedRange)
  }

  /// - Parameter shouldContinue: called between reads; false cancels the load.
  /// - Returns: nil if cancelled.
  func load(_ url: URL, part: Part, shouldContinue: () -> Bool) throws(URLError) -> LoadedResource? {
    try opened(try ResourceAddress(url), url) { opened throws(Errno) in
      switch part {
      case .description: try opened.description(as: url)
      case .all: try opened.load(as: url, shouldContinue: shouldContinue)
      case .range(let range): try opened.load(as: url, range: range, shouldContinue: shouldContinue)
      }
    }
  }

  private func opened<Value>(
    _ address: ResourceAddress, _ url: URL, _ body: (borrowing OpenedResource) throws(Errno) -> Value
  ) throws(URLError) -> Value {
    do throws(Errno) { return try body(try open(address)) } catch {
      if error == .socketNotConnected { try checkMount() }
      throw URLError(error, url)
    }
  }

  private func open(_ address: ResourceAddress) throws(Errno) -> OpenedResource {
    if let bundle = address.bundle { return try bundle.open(address.url) }
    switch backend {
    case .mount(let bundle): return try bundle.open(address.url)
    case .layers(let layers): return try layers.open(address.url)
    case .bundle(let bundle): return try bundle.layers().open(address.url)
    }
  }
}

/// A URL's resource, and the bundle that the URL names.
private struct ResourceAddress {
  let url: ResourceURL
  let bundle: LayeredBundle?

  init(_ url: URL) throws(URLError) {
    let parts: RouteURL
    do throws(RoutingError) { parts = try RouteURL(Array(url.absoluteString.utf8)) } catch {
      throw URLError(.badURL, url, error.description)
    }
    let host = parts.host.map { String(decoding: $0, as: UTF8.self) }
    bundle = NamedBundles.bundle(host)
    if bundle == nil, let host, NamedBundles.isName(host) {
      throw URLError(.resourceUnavailable, url, "the bundle that gave this URL does not exist any more")
    }
    do throws(ResourceURLError) {
      self.url = try ResourceURL(
        host: bundle == nil ? parts.host : nil, segments: parts.segments,
        localization: parts.parameter("localization"))
    } catch {
      throw URLError(.badURL, url, error.description)
    }
  }
}
