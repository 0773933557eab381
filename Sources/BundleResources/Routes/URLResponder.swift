import Foundation
import Posix
import Routing

/// Turns URLs into notifications in this process alone, without a mount.
///
/// Patterns are those of a mount's control file (`bundlefs-routes(5)`). The first one that matches a URL wins.
///
/// ```swift
/// let responder = URLResponder()
/// try responder.register("Animal", pattern: "l:(animal)Domain/s:Name/f:Weight/i:Age")
/// try responder.process(URL(string: "zoo://animal/spiny%20anteater/8/50")!)   // posts the notification "Animal"
/// ```
public final class URLResponder: Sendable {
  private let center: NotificationCenter
  private let table = Locked(RouteTable())

  /// A responder without routes.
  /// - Parameter center: the center to which notifications are posted.
  public init(center: NotificationCenter = .default) { self.center = center }

  /// The registered routes in order.
  public var routes: [RegisteredRoute] {
    table.withLock { table in
      table.routes.map { RegisteredRoute(name: $0.name, pattern: $0.pattern.description) }
    }
  }

  /// Registers a pattern after all others.
  /// - Parameters:
  ///   - name: the name of the notifications.
  ///   - pattern: as `bundlefs-routes(5)` describes it.
  ///   - other: the name of the route that it comes before; nil for the end.
  /// - Throws: ``RouteError`` for a malformed name or pattern, for one whose URLs an earlier route takes all, and for a
  ///   `before` that no route has.
  public func register(_ name: String, pattern: String, before other: String? = nil) throws(RouteError) {
    do throws(RoutingError) {
      let route = try Route(name: name, pattern: RoutePattern(pattern))
      try table.withLock { table throws(RoutingError) in
        if let other { try table.insert(route, before: other) } else { try table.append(route) }
      }
    } catch { throw RouteError(error) }
  }

  /// Removes the routes with a name.
  /// - Returns: how many there were.
  @discardableResult
  public func unregister(_ name: String) -> Int { table.withLock { $0.remove(name: name) } }

  /// Removes all routes.
  public func reset() { table.withLock { $0.removeAll() } }

  /// What a URL becomes; nil if no route matches it.
  /// - Throws: ``RouteError`` for a URL that is malformed, or whose components are not UTF-8.
  public func notification(for url: URL) throws(RouteError) -> RoutedNotification? {
    let text = url.absoluteString
    do throws(RoutingError) {
      let parsed = try RouteURL(Array(text.utf8))
      let match = try table.withLock { table throws(RoutingError) in try table.match(parsed) }
      return match.map { RoutedNotification($0, url: text) }
    } catch { throw RouteError(error) }
  }

  /// Posts the notification that a URL becomes; its object is this responder.
  /// - Returns: the notification; nil if no route matches the URL.
  /// - Throws: as ``notification(for:)``.
  @discardableResult
  public func process(_ url: URL) throws(RouteError) -> RoutedNotification? {
    guard let notification = try notification(for: url) else { return nil }
    center.post(notification.notification(object: self))
    return notification
  }
}

/// A route: the pattern of URLs, and the name of the notifications that they become.
public struct RegisteredRoute: Sendable, Hashable {
  /// The name of the notifications.
  public let name: String
  /// The pattern, as `bundlefs-routes(5)` describes it.
  public let pattern: String
}

/// Why a route or a URL was refused.
public struct RouteError: Error, Sendable, Hashable, LocalizedError, CustomStringConvertible {
  /// `.EINVAL` if it is malformed, `.EEXIST` if an earlier route takes all its URLs, `.ENOENT` if there is no such
  /// route, `.E2BIG` if it is too long; what a mount answers, too, such as `.EPERM`.
  public let code: POSIXErrorCode
  /// A sentence with the column in the text, counted from 1, if there is one.
  public let description: String

  /// The sentence.
  public var errorDescription: String? { description }

  init(_ error: RoutingError) { self.init(error.code.rawValue, error.description) }

  init(_ name: String, _ description: String) {
    code = Self.codes[name] ?? .EINVAL
    self.description = description
  }

  init(code: POSIXErrorCode, _ description: String) {
    (self.code, self.description) = (code, description)
  }

  private static let codes: [String: POSIXErrorCode] = [
    "EINVAL": .EINVAL, "ENOENT": .ENOENT, "EEXIST": .EEXIST, "E2BIG": .E2BIG, "EPERM": .EPERM,
    "ENOTDIR": .ENOTDIR, "EOPNOTSUPP": .EOPNOTSUPP, "EACCES": .EACCES, "EIO": .EIO,
  ]
}
