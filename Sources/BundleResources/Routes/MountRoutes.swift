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
  /// - Throws: ``RouteError`` if the mount refuses it; ``MountError``.
  public func register(_ name: String, pattern: String, before other: String? = nil) throws {
    try write("route \(name) \(pattern)" + (other.map { " before \($0)" } ?? ""))
  }

  /// Removes the routes with a name; only the mount's owner and root may.
  /// - Throws: as ``register(_:pattern:before:)``.
  public func unregister(_ name: String) throws { try write("unroute \(name)") }

  /// Removes all routes; only the mount's owner and root may.
  /// - Throws: as ``register(_:pattern:before:)``.
  public func reset() throws { try write("reset") }

  /// Posts a URL to all listeners of the mount.
  /// - Returns: the notification; nil if the caller may not read the results.
  /// - Throws: ``RouteError`` with `.ENOENT` if no route matches the URL; ``MountError``.
  @discardableResult
  public func post(_ url: URL) throws -> RoutedNotification? { try write(url.absoluteString) }

  /// What a URL would become, without posting it.
  /// - Throws: as ``post(_:)``.
  public func notification(for url: URL) throws -> RoutedNotification? {
    try write("match \(url.absoluteString)", url: url.absoluteString)
  }

  @discardableResult
  private func write(_ line: String, url: String? = nil) throws -> RoutedNotification? {
    if line.utf8.contains(UInt8(ascii: "\n")) {
      throw RouteError(code: .EINVAL, "a newline cannot be part of a name, a pattern or a URL")
    }
    let outcome = try outcome(of: Array(line.utf8), url: Array((url ?? line).utf8))
    if let result = outcome.result {
      if !result.isRejected { return RoutedNotification(result) }
      let json = JSONValue(result.bytes)
      throw RouteError(json?["errno"]?.string ?? "EINVAL", json?["error"]?.string ?? "the mount refuses it")
    }
    if let error = outcome.error { throw RouteError(code: POSIXError(error).code, "\(line): \(error)") }
    return nil
  }

  private func outcome(of line: [UInt8], url: [UInt8]) throws(MountError) -> ControlFileWriter.Outcome {
    try MountError.naming(mountPoint) { control throws(Errno) in
      var writer = try ControlFileWriter(control)
      return try writer.write(line, url: url)
    }
  }
}
