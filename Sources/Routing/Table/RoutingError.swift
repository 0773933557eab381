/// What a line of the control file can fail with, by the name of the errno that tells it.
public enum RoutingErrorCode: String, Sendable {
  /// The line, its URL or its pattern breaks a rule of the grammar.
  case malformed = "EINVAL"
  /// No route takes the URL, or it names no resource.
  case noRoute = "ENOENT"
  /// An earlier pattern takes all URLs of the new one.
  case shadowed = "EEXIST"
  /// The line is longer than ``RouteURL/maxLength``.
  case tooLong = "E2BIG"
  /// The writer may not change routes.
  case notPermitted = "EPERM"
  /// A layer's file may not be looked at.
  case forbidden = "EACCES"
  /// A layer could not be read.
  case unreadable = "EIO"
}

/// Why a line, a URL or a pattern was refused.
public struct RoutingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What the write is answered.
  public let code: RoutingErrorCode
  /// Why, for people.
  public let message: String
  /// Where in the text, in bytes from its start; nil if no place is to blame.
  public let offset: Int?

  /// An error with its reason, and its place if there is one.
  public init(_ code: RoutingErrorCode, _ message: String, at offset: Int? = nil) {
    self.code = code
    self.message = message
    self.offset = offset
  }

  /// Where in the text, in bytes counted from 1, as editors and compilers count.
  public var column: Int? { offset.map { $0 + 1 } }

  /// The place and the reason.
  public var description: String { column.map { "column \($0): \(message)" } ?? message }

  /// No route takes the URL.
  public static func noRoute(for url: RouteURL) -> RoutingError {
    RoutingError(.noRoute, "no route matches \(String(escaping: url.text))")
  }

  static func malformed(_ message: String, at offset: Int) -> RoutingError {
    RoutingError(.malformed, message, at: offset)
  }

  /// The same error of a text that begins so many bytes later.
  func moved(by distance: Int) -> RoutingError {
    RoutingError(code, message, at: offset.map { $0 + distance })
  }
}
