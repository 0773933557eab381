import Foundation
import FoundationNetworking
import Posix
import Routing

/// Answers the URLs of resources, such as `rsrc:///logo.png`, in URLSession.
///
/// Register where the resources are, then load them like anything else:
///
/// ```swift
/// try ResourceURLProtocol.register(mountPoint: URL(filePath: "/home/me/mnt"))
/// let session = URLSession(configuration: ResourceURLProtocol.configuration)
/// let (data, response) = try await session.data(from: URL(string: "rsrc:///logo.png")!)
/// ```
///
/// The response tells the MIME type, the length and, for text, the encoding. The errors are those of
/// ``ResourceSource/load(_:)``. The method HEAD gets the response without the data; any other counts as GET.
/// Download tasks are refused with `URLError.unsupportedURL`.
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

  /// The request as it is.
  public override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  /// Starts reading; returns at once.
  public override func startLoading() { load.start(for: self) }

  /// Stops reading. The client hears nothing more.
  public override func stopLoading() { load.stop() }
}

/// Which schemes are answered, and from where. All of it may be called from any thread.
extension ResourceURLProtocol {
  private static let sources = Locked<[String: ResourceSource]>([:])

  /// The schemes that are registered, in lower case, sorted.
  public static var registeredSchemes: [String] { sources.withLock { $0.keys.sorted() } }

  /// A configuration for sessions that load resources: without a cache, since what may change at any moment
  /// is not to be cached; and cancelling a task of a session with a URLCache can end the program, on Linux.
  ///
  /// The schemes that are registered are answered in every session, unless its `protocolClasses` or an
  /// earlier `URLProtocol.registerClass` answers them first.
  public static var configuration: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.protocolClasses = [ResourceURLProtocol.self] + (configuration.protocolClasses ?? [])
    return configuration
  }

  /// Has the URLs of a scheme answered from a source, from now on; one that was registered for the scheme is
  /// replaced. Loads that have begun go on with the old one.
  /// - Throws: `URLError.unsupportedURL` for what is no name of a scheme.
  public static func register(_ source: ResourceSource, scheme: String = "rsrc") throws(URLError) {
    guard Scheme.isName(Array(scheme.utf8)) else {
      throw URLError(
        .unsupportedURL, userInfo: [NSLocalizedDescriptionKey: "'\(scheme)' is no name of a scheme"])
    }
    sources.withLock { sources in
      if sources.isEmpty { _ = URLProtocol.registerClass(ResourceURLProtocol.self) }
      sources[scheme.lowercased()] = source
    }
  }

  /// Has the URLs of a scheme answered from a mount.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which a bundle is or will be mounted.
  ///   - scheme: the scheme; the mount knows it by the same name, its option `resource_scheme`.
  /// - Throws: `URLError.badURL` if the mount point is no file URL; `.unsupportedURL` for what is no name of a
  ///   scheme.
  public static func register(mountPoint: URL, scheme: String = "rsrc") throws(URLError) {
    try register(try ResourceSource(mountPoint: mountPoint, scheme: scheme), scheme: scheme)
  }

  /// Has the URLs of a scheme answered from a bundle with substitutions, without a mount.
  /// - Parameters:
  ///   - main: the file URL of the bundle's directory.
  ///   - substitution: the file URLs of the directories that are laid over it; the first wins.
  ///   - options: how resources are looked up.
  ///   - scheme: the scheme.
  /// - Throws: `URLError`, as `ResourceSource` does for directories that cannot be opened.
  public static func register(
    main: URL, substitution: [URL] = [], options: LookupOptions = LookupOptions(), scheme: String = "rsrc"
  ) throws(URLError) {
    try register(
      try ResourceSource(main: main, substitution: substitution, options: options), scheme: scheme)
  }

  /// Has the URLs of a scheme answered no more.
  /// - Returns: whether the scheme was registered.
  @discardableResult
  public static func unregister(scheme: String = "rsrc") -> Bool {
    sources.withLock { sources in
      guard sources.removeValue(forKey: scheme.lowercased()) != nil else { return false }
      if sources.isEmpty { URLProtocol.unregisterClass(ResourceURLProtocol.self) }
      return true
    }
  }

  /// The source from which a URL is answered; nil if its scheme is not registered.
  static func source(of url: URL) -> ResourceSource? {
    guard let scheme = url.scheme?.lowercased() else { return nil }
    return sources.withLock { $0[scheme] }
  }
}
