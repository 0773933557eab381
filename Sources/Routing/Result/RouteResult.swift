/// What a line came to, as the control file shows it.
public struct RouteResult: Sendable {
  /// How it ended.
  public enum Outcome: Sendable {
    /// The URL's notification was posted.
    case posted(RouteMatch)
    /// The URL has a notification, which was not to be posted.
    case matched(RouteMatch)
    /// The URL names a resource.
    case resolved(ResolvedResource)
    /// A change of the table, or what is built in, was done. The names are those of earlier routes that a new
    /// one overlaps.
    case applied(overlaps: [String])
    /// It failed.
    case rejected(RoutingError)
  }

  /// Its number; results are counted from 1.
  public let sequence: UInt64
  /// When it was done.
  public let time: Timestamp
  /// The URL, or the line if it is none, as it was written.
  public let url: [UInt8]
  /// How it ended.
  public let outcome: Outcome

  /// A result.
  public init(sequence: UInt64, time: Timestamp, url: [UInt8], outcome: Outcome) {
    self.sequence = sequence
    self.time = time
    self.url = url
    self.outcome = outcome
  }

  /// The result as a JSON object on a line, without a newline. Bytes of the URL that are no UTF-8 are
  /// percent-encoded, since JSON cannot carry them.
  public var json: [UInt8] {
    var json = JSONWriter()
    json.object { json in
      json.member("sequence", sequence)
      json.member("time", time.description)
      json.member("url", String(escaping: url))
      write(outcome, to: &json)
    }
    return json.bytes
  }

  private func write(_ outcome: Outcome, to json: inout JSONWriter) {
    json.name("outcome")
    switch outcome {
    case .posted(let match):
      json.string("posted")
      write(match, to: &json)
    case .matched(let match):
      json.string("matched")
      write(match, to: &json)
    case .resolved(let resource):
      json.string("resolved")
      resource.write(to: &json)
    case .applied(let overlaps):
      json.string("applied")
      if overlaps.isEmpty { return }
      json.name("overlaps")
      json.strings(overlaps)
    case .rejected(let error):
      json.string("rejected")
      json.member("errno", error.code.rawValue)
      json.member("error", error.description)
    }
  }

  private func write(_ match: RouteMatch, to json: inout JSONWriter) {
    json.member("notification", match.name)
    json.name("userInfo")
    json.object { json in
      for item in match.userInfo {
        json.name(item.key)
        json.value(item.value)
      }
    }
    if let query = match.query {
      json.member("query", query)
    }
    if let fragment = match.fragment {
      json.member("fragment", fragment)
    }
  }
}

extension JSONWriter {
  /// Writes a value of a userInfo.
  public mutating func value(_ value: RouteValue) {
    switch value {
    case .text(let text): string(text)
    case .integer(let integer): self.integer(integer)
    case .number(let number): self.number(number)
    }
  }
}
