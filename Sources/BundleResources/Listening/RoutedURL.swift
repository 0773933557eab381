import Foundation
import Routing

/// The URL of a notification of a ``RouteListener``: the notification's `object`.
public final class RoutedURL: Sendable {
  /// The result's sequence number in the mount; consecutive results have consecutive numbers.
  public let sequence: UInt64
  /// The time of posting, with millisecond precision.
  public let time: Date
  /// The URL as written; bytes that are not UTF-8 are percent-encoded.
  public let text: String
  /// The URL's scheme, in lower case.
  public let scheme: String?
  /// The URL's port; nil if there is none.
  public let port: Int?
  /// How many listeners there were, this one included.
  public let listeners: Int?
  /// The query parameters that the route does not bind, as written; nil if there are none.
  public let query: String?
  /// The fragment as written; nil if there is none.
  public let fragment: String?

  /// The URL; nil if Foundation cannot parse it.
  public var url: URL? { URL(string: text) }

  init(_ posted: PostedResult) {
    sequence = posted.sequence
    let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    time = (try? style.parse(posted.time)) ?? Date()
    text = posted.url
    scheme = posted.scheme
    port = posted.port
    listeners = posted.listeners
    query = posted.query
    fragment = posted.fragment
  }
}

extension PostedResult {
  var notification: Notification { RoutedNotification(self).notification(object: RoutedURL(self)) }
}
