/// A notification as the control file tells of it: what a result whose outcome is `posted` says.
public struct PostedResult: Hashable, Sendable {
  /// The result's number.
  public let sequence: UInt64
  /// When it was posted, as `Timestamp` writes it.
  public let time: String
  /// The URL as it was written.
  public let url: String
  /// The notification's name.
  public let name: String
  /// The values of the pattern's keys.
  public let userInfo: [String: RouteValue]
  /// The parameters of the query that the pattern does not bind, as they were written; nil without any.
  public let query: String?
  /// The fragment as it was written; nil without one.
  public let fragment: String?
}

extension ResultLine {
  /// The notification; nil if the result has another outcome.
  public var posted: PostedResult? {
    guard let result = JSONValue(bytes), result["outcome"]?.string == "posted",
      let name = result["notification"]?.string, let url = result["url"]?.string,
      let time = result["time"]?.string,
      case .object(let members) = result["userInfo"]
    else { return nil }
    return PostedResult(
      sequence: sequence, time: time, url: url, name: name, userInfo: members.compactMapValues(Self.value),
      query: result["query"]?.string, fragment: result["fragment"]?.string)
  }

  private static func value(_ value: JSONValue) -> RouteValue? {
    switch value {
    case .string(let text): .text(text)
    case .integer(let integer): .integer(integer)
    case .number(let number): .number(number)
    case .boolean, .null, .array, .object: nil
    }
  }
}
