import Routing

extension ResultLine {
  /// The variables `BUNDLEFS_…=VALUE` for a program that handles the result: what it is, and the value of each key. Those
  /// are left out that an environment cannot hold: with NUL, or with a key that is no name.
  public var environment: [[UInt8]] {
    guard let json = JSONValue(bytes) else { return [] }
    var variables: [(String, String?)] = [
      ("SEQUENCE", "\(sequence)"), ("URL", json["url"]?.string), ("OUTCOME", json["outcome"]?.string),
      ("NOTIFICATION", json["notification"]?.string),
    ]
    if case .object(let values) = json["userInfo"] {
      for (key, value) in values where Self.isKey(key) {
        variables.append(("VALUE_\(key)", Self.text(of: value)))
      }
    }
    return variables.compactMap { name, value in
      value.flatMap { $0.utf8.contains(0) ? nil : Array("BUNDLEFS_\(name)=\($0)".utf8) }
    }
  }

  /// Whether a pattern can have the key.
  private static func isKey(_ key: String) -> Bool {
    let (letters, digits) = (UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"))
    return !key.isEmpty
      && key.utf8.allSatisfy { letters ~= $0 | 0x20 || digits ~= $0 || $0 == UInt8(ascii: "_") }
  }

  /// A string as it is, another value as JSON.
  private static func text(of value: JSONValue) -> String? {
    guard let bound = RouteValue(value) else { return nil }
    if case .text(let text) = bound { return text }
    var json = JSONWriter()
    json.value(bound)
    return json.text
  }
}
