#if Networking
import Foundation
import Posix
import Routing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Loads resource URLs, such as `rsrc:///logo.png`, in URLSession.
///
/// Register a source of resources, then load them like any other URL:
///
/// ```swift
/// try ResourceURLProtocol.register(mountPoint: URL(filePath: "/home/me/mnt"))
/// let session = URLSession(configuration: ResourceURLProtocol.configuration)
/// let (data, response) = try await session.data(from: URL(string: "rsrc:///logo.png")!)
/// ```
///
/// The response has the MIME type, the length and, for text, the encoding. The errors are those of
/// ``ResourceSource/load(_:)``. HEAD returns the response without data; any other method is treated as GET.
/// A GET with the header `Range` and one range of bytes gets that part, with an `HTTPURLResponse` of status 206 or 416.
/// Download tasks fail with `URLError.unsupportedURL`.
public final class ResourceURLProtocol: URLProtocol {
  private let load = ResourceLoad()

  /// Whether the scheme of the request's URL is registered.
  public override class func canInit(with request: URLRequest) -> Bool {
    request.url.flatMap(source(of:)) != nil
  }

  /// Whether the scheme of the task's URL is registered.
  public override class func canInit(with task: URLSessionTask) -> Bool {
    task.currentRequest.map(canInit(with:)) ?? false
  }

  /// Returns the request unchanged.
  public override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  /// Starts the load asynchronously.
  public override func startLoading() { load.start(for: self) }

  /// Stops the load. The client receives no further callback.
  public override func stopLoading() { load.stop() }
}

/// The registered schemes and their sources. All members are thread-safe.
extension ResourceURLProtocol {
  private struct Registry {
    var sources: [String: ResourceSource] = [:]
    /// Whether bundles have given URLs, which need no registered scheme.
    var hasURLsOfBundles = false
    /// Whether URLSession knows the class.
    private var isRegistered = false

    mutating func registerClass() {
      let isNeeded = hasURLsOfBundles || !sources.isEmpty
      if isNeeded == isRegistered { return }
      isRegistered = isNeeded
      if isNeeded {
        _ = URLProtocol.registerClass(ResourceURLProtocol.self)
      } else {
        URLProtocol.unregisterClass(ResourceURLProtocol.self)
      }
    }
  }

  private static let registry = Locked(Registry())
  private static let defaultScheme = "rsrc"

  /// The registered schemes in lower case, sorted.
  public static var registeredSchemes: [String] { registry.withLock { $0.sources.keys.sorted() } }

  /// A configuration for sessions that load resources.
  ///
  /// It has no URLCache: resources may change at any time, and on Linux cancelling a task of a session with a cache
  /// can crash the process. Registered schemes also work in every other session, unless its `protocolClasses` or an
  /// earlier `URLProtocol.registerClass` takes precedence.
  public static var configuration: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.protocolClasses = [ResourceURLProtocol.self] + (configuration.protocolClasses ?? [])
    return configuration
  }

  /// Registers a source for a scheme and replaces an earlier one. Loads in progress keep the old source.
  /// - Throws: `URLError.unsupportedURL` for an invalid scheme name.
  public static func register(_ source: ResourceSource, scheme: String = "rsrc") throws(URLError) {
    guard Scheme.isName(Array(scheme.utf8)) else {
      throw URLError(
        .unsupportedURL, userInfo: [NSLocalizedDescriptionKey: "'\(scheme)' is not a valid URL scheme"])
    }
    let former = registry.withLock { registry in
      defer { registry.registerClass() }
      return registry.sources.updateValue(source, forKey: scheme.lowercased())
    }
    // Outside the lock, since its archives may be closed with it.
    withExtendedLifetime(former) {}
  }

  /// Registers a mount for a scheme.
  ///
  /// For one that is mounted later, register a ``ResourceSource``.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which a bundle is mounted.
  ///   - scheme: the scheme, which must be the mount's option `resource_scheme`.
  /// - Throws: `URLError.badURL` if the mount point is not a file URL; `.unsupportedURL` for an invalid scheme name;
  ///   `.resourceUnavailable` where no bundle is mounted, or one whose resources have another scheme.
  public static func register(mountPoint: URL, scheme: String = "rsrc") throws(URLError) {
    let source = try ResourceSource(mountPoint: mountPoint, scheme: scheme)
    try source.checkMount()
    try register(source, scheme: scheme)
  }

  /// Registers a bundle with substitutions, without a mount, for a scheme.
  /// - Parameters:
  ///   - main: the file URL of the bundle's directory.
  ///   - substitution: the file URLs of the directories that override it, in descending order of
  ///     precedence.
  ///   - options: options of the lookup.
  ///   - scheme: the scheme.
  /// - Throws: as ``ResourceSource/init(main:substitution:options:)`` and ``register(_:scheme:)``.
  public static func register(
    main: URL, substitution: [URL] = [], options: LookupOptions = LookupOptions(), scheme: String = "rsrc"
  ) throws(URLError) {
    try register(
      try ResourceSource(main: main, substitution: substitution, options: options), scheme: scheme)
  }

  /// Unregisters a scheme.
  /// - Returns: whether the scheme was registered.
  @discardableResult
  public static func unregister(scheme: String = "rsrc") -> Bool {
    let former = registry.withLock { registry in
      defer { registry.registerClass() }
      return registry.sources.removeValue(forKey: scheme.lowercased())
    }
    // Outside the lock, as above.
    return withExtendedLifetime(former) { former != nil }
  }

  /// The source of the URL's scheme, or of the bundle that the URL names; nil if the scheme is not registered.
  static func source(of url: URL) -> ResourceSource? {
    guard let scheme = url.scheme?.lowercased() else { return nil }
    let source = registry.withLock { $0.sources[scheme] }
    guard source != nil || scheme == defaultScheme, let bundle = NamedBundles.bundle(url.host) else {
      return source
    }
    return ResourceSource(bundle: bundle)
  }

  /// The scheme of the URLs that a bundle gives: the default one if it is registered for the bundle or the bundle for
  /// none.
  static func scheme(of bundle: LayeredBundle) -> String {
    let schemes = registry.withLock { registry in
      registry.sources.keys.filter { registry.sources[$0]?.isBundle(bundle) == true }
    }
    return schemes.contains(defaultScheme) ? defaultScheme : schemes.min() ?? defaultScheme
  }

  /// Makes URLSession load the URLs that bundles give.
  static func loadURLsOfBundles() {
    registry.withLock { registry in
      registry.hasURLsOfBundles = true
      registry.registerClass()
    }
  }
}
#else
/// Without URLSession, a bundle's URLs are loaded by the bundle and by ``ResourceSource`` only.
enum ResourceURLProtocol {
  static func scheme(of bundle: LayeredBundle) -> String { "rsrc" }
  static func loadURLsOfBundles() {}
}
#endif
