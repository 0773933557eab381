/// A notification: a result of the control file whose outcome is `posted`.
public struct PostedResult: Hashable, Sendable {
  /// The sequence number of the result.
  public let sequence: UInt64
  /// The time of the result in the format of ``Timestamp``.
  public let time: String
  /// The URL, percent-encoded.
  public let url: String
  /// The notification's name.
  public let name: String
  /// The values of the bound keys.
  public let userInfo: [String: RouteValue]
  /// The URL's scheme, in lower case; nil from an earlier version.
  public let scheme: String?
  /// The URL's port; nil if there is none.
  public let port: Int?
  /// How many listeners there were, this one included; nil from an earlier version.
  public let listeners: Int?
  /// The parameters that the pattern does not bind, percent-encoded; nil if there are none.
  public let query: String?
  /// The fragment, percent-encoded; nil if there is none.
  public let fragment: String?
}

extension ResultLine {
  /// The notification; nil for other outcomes.
  public var posted: PostedResult? {
    guard let result = JSONValue(bytes), result["outcome"]?.string == "posted",
      let name = result["notification"]?.string, let url = result["url"]?.string,
      let time = result["time"]?.string,
      case .object(let members) = result["userInfo"]
    else { return nil }
    return PostedResult(
      sequence: sequence, time: time, url: url, name: name,
      userInfo: members.compactMapValues(RouteValue.init),
      scheme: result["scheme"]?.string, port: result["port"]?.int, listeners: result["listeners"]?.int,
      query: result["query"]?.string, fragment: result["fragment"]?.string)
  }
}

extension RouteValue {
  /// A value as a result shows it; nil for what no key is bound to.
  public init?(_ json: JSONValue) {
    switch json {
    case .string(let text): self = .text(text)
    case .integer(let integer): self = .integer(integer)
    case .number(let number): self = .number(number)
    case .array(let values): self = .array(values.compactMap(RouteValue.init))
    case .boolean, .null, .object: return nil
    }
  }
}
