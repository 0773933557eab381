/// The result of a command or URL.
public struct RouteResult: Sendable {
  /// The outcome of a command.
  public enum Outcome: Sendable {
    /// The URL matched and the notification was posted to so many listeners.
    case posted(RouteMatch, listeners: Int = 0)
    /// The URL matched; the command was `match`.
    case matched(RouteMatch)
    /// The URL resolved to a resource.
    case resolved(ResolvedResource)
    /// A route command or a built-in URL was executed. A new route may overlap others.
    case applied(overlaps: RouteOverlaps = .none)
    /// The command failed.
    case rejected(RoutingError)
  }

  /// The sequence number, from 1.
  public let sequence: UInt64
  /// The time of completion.
  public let time: Timestamp
  /// The URL, or the whole command, as given.
  public let url: [UInt8]
  /// The outcome.
  public let outcome: Outcome

  /// Creates a result.
  public init(sequence: UInt64, time: Timestamp, url: [UInt8], outcome: Outcome) {
    self.sequence = sequence
    self.time = time
    self.url = url
    self.outcome = outcome
  }

  /// The JSON object on one line, without a newline. Bytes of the URL that are not UTF-8 are percent-encoded.
  public var json: [UInt8] {
    var json = JSONWriter(capacity: 256 + 2 * url.count)
    json.object { json in
      json.member("sequence", sequence)
      json.member("time", time.description)
      json.name("url")
      json.string(escaping: url)
      write(outcome, to: &json)
    }
    return json.bytes
  }

  private func write(_ outcome: Outcome, to json: inout JSONWriter) {
    json.name("outcome")
    switch outcome {
    case .posted(let match, let listeners):
      json.string("posted")
      write(match, to: &json)
      json.member("listeners", listeners)
    case .matched(let match):
      json.string("matched")
      write(match, to: &json)
    case .resolved(let resource):
      json.string("resolved")
      resource.write(to: &json)
    case .applied(let overlaps):
      json.string("applied")
      if overlaps.count == 0 { return }
      json.name("overlaps")
      json.strings(overlaps.names)
      json.member("overlapCount", overlaps.count)
      if overlaps.isIncomplete { json.member("overlapsIncomplete", true) }
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
    json.member("scheme", match.scheme)
    if let port = match.port { json.member("port", port) }
    if let query = match.query { json.member("query", query) }
    if let fragment = match.fragment { json.member("fragment", fragment) }
  }
}

extension JSONWriter {
  /// Writes a bound value.
  public mutating func value(_ value: RouteValue) {
    switch value {
    case .text(let text): string(text)
    case .integer(let integer): self.integer(integer)
    case .number(let number): self.number(number)
    case .array(let values): array(values) { $0.value($1) }
    }
  }
}
