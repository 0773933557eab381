import Foundation
import PropertyLists
import StringTables
import TestSupport

extension ParsedTable where Table == StringTable {
  init(_ text: String) { self = StringTable.parse(Array(text.utf8)) }

  /// `KEY=VALUE` of each entry, then the error as `LINE:COLUMN`.
  var summary: String {
    let entries = table.entries.map { "\($0.key)=\($0.value)" }
    return (entries + [error.map { $0.position?.description ?? $0.reason }].compactMap { $0 }).joined(
      separator: " ")
  }
}

/// Random tables with the characters that a parser could mistake.
struct RandomTable {
  var random: SplitMix64

  static let characters: [String] = [
    "a", "b", "Z", "0", "7", " ", "\"", "'", "\\", "\n", "\r", "\t", "\r\n", ";", "=", "{", "}", "/", "*",
    "/*", "*/",
    "//", "%", "&", "<", ">", "é", "e\u{301}", "€", "😀", "\u{FEFF}", "\u{2028}", "U0041", "n", "\u{7F}", "日本",
  ]

  mutating func text(upTo count: Int) -> String {
    (0..<random.number(0...count)).map { _ in random.pick(Self.characters) }.joined()
  }

  /// Entries with distinct keys.
  mutating func entries(upTo count: Int) -> [StringTable.Entry] {
    var keys: Set<[UInt8]> = []
    return (0..<random.number(0...count)).compactMap { _ in
      let key = text(upTo: 6)
      guard keys.insert(Array(key.utf8)).inserted else { return nil }
      return StringTable.Entry(key: key, value: text(upTo: 12))
    }
  }
}
