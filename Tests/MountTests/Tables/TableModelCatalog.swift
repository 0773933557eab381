import TestSupport

/// Random string catalogs: a key in each line.
enum TableModelCatalog {
  private static let malformed = "{\"strings\": {\"k1\": }\n"

  static func text(_ random: inout SplitMix64) -> String {
    if random.percent(8) { return malformed }
    let keys = Set((0..<random.number(0...4)).map { _ in random.number(0...6) }).sorted()
    let lines = keys.map { key in
      let units = ["fr", "en", "de"].filter { _ in random.percent(60) }.map { language in
        let value = "c\(random.number(0...1000))"
        return "\"\(language)\": {\"stringUnit\": {\"state\": \"translated\", \"value\": \"\(value)\"}}"
      }
      return "\"k\(key)\": {\"localizations\": {\(units.joined(separator: ", "))}}"
    }
    return "{\"strings\": {\n" + lines.joined(separator: ",\n") + "\n}}\n"
  }

  /// The language of a table by its path; nil outside the folders of languages.
  static func language(of path: ByteString) -> String? {
    let parts = path.text.split(separator: "/")
    return parts.count == 2 ? String(parts[0].dropLast(".lproj".count)) : nil
  }

  /// What a catalog contributes in a language; nothing if it is malformed.
  static func table(_ text: String, _ language: String) -> [String: String] {
    if text == malformed { return [:] }
    var table: [String: String] = [:]
    for line in text.split(separator: "\n") {
      // The key, `localizations`, and for each language: its name, `stringUnit`, `state`, the state, `value`, the value.
      let words = line.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
        .filter { $0.offset % 2 == 1 }.map { String($0.element) }
      guard words.count > 2, words[1] == "localizations" else { continue }
      for start in stride(from: 2, to: words.count, by: 6) where words[start] == language {
        table[words[0]] = words[start + 5]
      }
    }
    return table
  }
}
