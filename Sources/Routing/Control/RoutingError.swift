/// Why a line, a URL or a pattern was refused.
public struct RoutingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The errno of the write.
  public let code: RouteErrno
  /// The reason, for users.
  public let message: String
  /// The byte offset of the error in the text; nil if there is none.
  public let offset: Int?

  /// Creates an error.
  public init(_ code: RouteErrno, _ message: String, at offset: Int? = nil) {
    self.code = code
    self.message = message
    self.offset = offset
  }

  /// The offset counted from 1, as in compiler diagnostics.
  public var column: Int? { offset.map { $0 + 1 } }

  /// The column and the message.
  public var description: String { column.map { "column \($0): \(message)" } ?? message }

  /// No route matches the URL.
  public static func noRoute(for url: RouteURL) -> RoutingError {
    RoutingError(.noRoute, "no route matches \(String(escaping: url.text))")
  }

  static func malformed(_ message: String, at offset: Int) -> RoutingError {
    RoutingError(.malformed, message, at: offset)
  }

  /// The error with its offset increased by a distance.
  func shifted(by distance: Int) -> RoutingError {
    RoutingError(code, message, at: offset.map { $0 + distance })
  }
}
