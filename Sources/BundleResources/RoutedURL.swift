import Foundation
import Routing

/// The URL behind a notification of a ``RouteListener``: the notification's `object`.
public final class RoutedURL: Sendable {
  /// The number of the result in the mount; they grow by one.
  public let sequence: UInt64
  /// When it was posted, to the millisecond.
  public let time: Date
  /// The URL as it was written; bytes that are no UTF-8 are percent-encoded.
  public let text: String
  /// The parameters of the query that the route does not bind, as they were written; nil without any.
  public let query: String?
  /// The fragment as it was written; nil without one.
  public let fragment: String?

  /// The URL; nil for one that Foundation does not take for one.
  public var url: URL? { URL(string: text) }

  init(_ posted: PostedResult) {
    sequence = posted.sequence
    let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    time = (try? style.parse(posted.time)) ?? Date()
    text = posted.url
    query = posted.query
    fragment = posted.fragment
  }
}

extension PostedResult {
  /// The notification: texts are `String`, integers `Int`, numbers `Double`.
  var notification: Notification {
    let values = userInfo.mapValues { value -> Any in
      switch value {
      case .text(let text): text
      case .integer(let integer): Int(integer)
      case .number(let number): number
      }
    }
    return Notification(name: Notification.Name(name), object: RoutedURL(self), userInfo: values)
  }
}
