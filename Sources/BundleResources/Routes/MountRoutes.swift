import ControlClient
import Foundation
import Posix
import Routing

/// Registers routes in a mount, and posts URLs to it, by its control file.
public struct MountRoutes: Sendable {
  private let mountPoint: URL

  /// - Parameter mountPoint: the file URL of the directory on which a bundle is mounted.
  public init(mountPoint: URL) { self.mountPoint = mountPoint }

  /// Registers a pattern after all others; only the mount's owner and root may.
  /// - Parameters:
  ///   - name: the name of the notifications.
  ///   - pattern: as `bundlefs-routes(5)` describes it.
  ///   - other: the name of the route that it comes before; nil for the end.
  /// - Throws: ``MountError``; ``MountError/refused(_:)`` if the mount refuses it.
  public func register(
    _ name: String, pattern: String, before other: String? = nil
  ) throws(MountError) {
    let route: Route
    do throws(RoutingError) {
      route = try Route(name: name, pattern: RoutePattern(pattern))
      if let other { try Route.validate(name: other) }
    } catch { throw .refused(RouteError(error)) }
    try write(route.description + (other.map { " before \($0)" } ?? ""))
  }

  /// Removes the routes with a name; only the mount's owner and root may.
  /// - Throws: as ``register(_:pattern:before:)``.
  public func unregister(_ name: String) throws(MountError) {
    do throws(RoutingError) { try Route.validate(name: name) } catch { throw .refused(RouteError(error)) }
    try write("unroute \(name)")
  }

  /// Removes all routes; only the mount's owner and root may.
  /// - Throws: as ``register(_:pattern:before:)``.
  public func reset() throws(MountError) { try write("reset") }

  /// Posts a URL to all listeners of the mount. It may come from a stranger: a command of the mount is refused.
  /// - Returns: the notification; nil if the caller may not read the results.
  /// - Throws: ``MountError``; ``MountError/refused(_:)`` with `.ENOENT` if no route matches the URL, with `.EINVAL` if it is
  ///   a command, such as `bundlefs:///layers`, or no URL with a scheme.
  @discardableResult
  public func post(_ url: URL) throws(MountError) -> RoutedNotification? {
    let text = try Self.routed(url)
    return try write(text, url: text)
  }

  /// What a URL would become, without posting it.
  /// - Throws: as ``post(_:)``.
  public func notification(for url: URL) throws(MountError) -> RoutedNotification? {
    let text = try Self.routed(url)
    return try write("match \(text)", url: text)
  }

  /// The text of a URL that can become a notification or a resource.
  private static func routed(_ url: URL) throws(MountError) -> String {
    let text = url.absoluteString
    let parsed: RouteURL
    do throws(RoutingError) { parsed = try RouteURL(Array(text.utf8)) } catch {
      throw .refused(RouteError(error))
    }
    if parsed.scheme == "bundlefs" {
      throw .refused(RouteError(code: .EINVAL, "'\(text)' is a command of the mount, which cannot be posted"))
    }
    return text
  }

  /// - Parameter line: the caller has checked what it consists of, so that it is one line and the command that is meant.
  @discardableResult
  private func write(_ line: String, url: String? = nil) throws(MountError) -> RoutedNotification? {
    let outcome = try outcome(of: Array(line.utf8), url: Array((url ?? line).utf8))
    if let result = outcome.result {
      if !result.isRejected { return RoutedNotification(result) }
      let json = JSONValue(result.bytes)
      let reason = json?["error"]?.string ?? "the mount refuses it"
      throw .refused(RouteError(json?["errno"]?.string ?? "EINVAL", reason))
    }
    if let error = outcome.error {
      throw .refused(RouteError(code: POSIXError(error).code, "\(line): \(error)"))
    }
    return nil
  }

  private func outcome(of line: [UInt8], url: [UInt8]) throws(MountError) -> ControlFileWriter.Outcome {
    try MountError.naming(mountPoint) { control throws(Errno) in
      var writer = try ControlFileWriter(control)
      return try writer.write(line, url: url)
    }
  }
}
