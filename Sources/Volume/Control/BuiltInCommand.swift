import Posix
import Routing

/// A command of the scheme `bundlefs:`, which no route can take.
enum BuiltInCommand: Equatable {
  case sync
  /// `bundlefs:///invalidate[/PATH]`; the path's names from the root.
  case invalidate([[UInt8]])

  static let scheme = "bundlefs"

  /// - Throws: EINVAL for a path that no file can have; ENOENT for an unknown command.
  init(_ url: RouteURL) throws(RoutingError) {
    let names = url.components
    let command = url.hasHost ? nil : names.first.map { String(decoding: $0, as: UTF8.self) }
    switch command {
    case "sync" where names.count == 1: self = .sync
    case "invalidate":
      let path = Array(names.dropFirst())
      if path.contains(where: { $0.contains(0) || $0.contains(UInt8(ascii: "/")) }) {
        throw RoutingError(.malformed, "a name in the path holds '/' or NUL, which no file's does")
      }
      self = .invalidate(path)
    default:
      throw RoutingError(
        .noRoute, "only bundlefs:///sync and bundlefs:///invalidate[/PATH] are built in")
    }
  }
}
