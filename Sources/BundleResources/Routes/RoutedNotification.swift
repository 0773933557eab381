import Foundation
import Routing

/// What a URL becomes by the first route that matches it: the route's name, and typed values from the URL.
public struct RoutedNotification: Sendable, Hashable {
  /// A value from a URL.
  public enum Value: Sendable, Hashable {
    /// From `s:`, `l:` and `*:`.
    case text(String)
    /// From `i:`.
    case integer(Int)
    /// From `f:`.
    case number(Double)
    /// From a query parameter with `[]`.
    case list([Value])

    /// `String`, `Int`, `Double`, or an array of them, as in a notification's `userInfo`.
    public var foundationValue: any Sendable {
      switch self {
      case .text(let text): text
      case .integer(let integer): integer
      case .number(let number): number
      case .list(let values): values.map(\.foundationValue)
      }
    }

    init(_ value: RouteValue) {
      switch value {
      case .text(let text): self = .text(text)
      case .integer(let integer): self = .integer(Int(integer))
      case .number(let number): self = .number(number)
      case .array(let values): self = .list(values.map(Value.init))
      }
    }
  }

  /// The route's name.
  public let name: String
  /// The URL; bytes that are not UTF-8 are percent-encoded.
  public let url: String
  /// The values by the keys of the pattern.
  public let values: [String: Value]
  /// The sequence number of the result in the mount; nil for a notification of a ``URLResponder``.
  public let sequence: UInt64?

  /// The value of a key; nil if the pattern has no such key, or the URL lacks it.
  public subscript(key: String) -> Value? { values[key] }

  /// The text of a key; nil if it has another type or is missing.
  public func text(_ key: String) -> String? { if case .text(let text) = values[key] { text } else { nil } }

  /// The integer of a key; nil if it has another type or is missing.
  public func integer(_ key: String) -> Int? {
    if case .integer(let integer) = values[key] { integer } else { nil }
  }

  /// The number of a key; nil if it has another type or is missing.
  public func number(_ key: String) -> Double? {
    if case .number(let number) = values[key] { number } else { nil }
  }

  /// For a NotificationCenter: the name is the route's, and `userInfo` has the values as `String`, `Int` and `Double`.
  /// - Parameter object: the notification's object.
  public func notification(object: Any? = nil) -> Notification {
    Notification(
      name: Notification.Name(name), object: object, userInfo: values.mapValues(\.foundationValue))
  }

  init(_ match: RouteMatch, url: String) {
    (name, self.url, sequence) = (match.name, url, nil)
    values = Dictionary(
      match.userInfo.map { ($0.key, Value($0.value)) }, uniquingKeysWith: { first, _ in first })
  }

  init(_ posted: PostedResult) {
    (name, url, sequence) = (posted.name, posted.url, posted.sequence)
    values = posted.userInfo.mapValues(Value.init)
  }

  /// - Returns: nil unless the URL was posted or matched.
  init?(_ result: ResultLine) {
    guard let json = JSONValue(result.bytes), let name = json["notification"]?.string,
      let url = json["url"]?.string, case .object(let members) = json["userInfo"]
    else { return nil }
    (self.name, self.url, sequence) = (name, url, result.sequence)
    values = members.compactMapValues { RouteValue($0).map(Value.init) }
  }
}
