import Foundation
import StringTables
import TestSupport
import Testing

/// Damaged files, and inputs at which a careless parser takes quadratic time.
@Suite struct DamageTests {
  private static func files(_ tables: inout RandomTable) throws -> [[UInt8]] {
    let entries = tables.entries(upTo: 5) + [.init(key: "x", value: "y", comment: "// é")]
    let text = String(decoding: StringTable(entries).written(), as: UTF8.self)
    let strings = Dictionary(entries.map { ($0.key, $0.value) }) { $1 }
    let form: [String: Any] = [
      "NSStringFormatSpecTypeKey": "NSStringPluralRuleType", "other": "%d", "one": "%#@n@",
    ]
    let list: [String: Any] = ["k": ["NSStringLocalizedFormatKey": "%#@n@", "n": form], "s": strings]
    return [Array(text.utf8), [0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }]
      + (try [PropertyListSerialization.PropertyListFormat.xml, .binary].flatMap { format in
        try [strings, list].map {
          Array(try PropertyListSerialization.data(fromPropertyList: $0, format: format, options: 0))
        }
      })
  }

  private static func parse(_ file: [UInt8]) {
    let parsed = StringTable.parse(file)
    // What a damaged table still has can be written and read.
    let again = StringTable.parse(parsed.table.written())
    #expect(again.error == nil && again.table == parsed.table, "\(file)")
    let plurals = PluralTable.parse(file).table
    _ = plurals.text(for: "k", arguments: [.integer(1)], language: "en")
  }

  @Test("truncated files keep what precedes the cut", arguments: Seeds.chosen(4))
  func truncations(seed: UInt64) throws {
    var tables = RandomTable(random: SplitMix64(seed: seed))
    for file in try Self.files(&tables) {
      for _ in 0..<200 { Self.parse(Array(file.prefix(tables.random.number(0...file.count)))) }
    }
    let entries = (0..<20).map { StringTable.Entry(key: "\($0)", value: tables.text(upTo: 5)) }
    let text = StringTable(entries).written()
    for length in 0...text.count {
      let table = StringTable.parse(Array(text.prefix(length))).table
      #expect(table.entries.elementsEqual(entries.prefix(table.entries.count)), "\(length)")
    }
  }

  @Test("files with flipped bits never trap", arguments: Seeds.chosen(8))
  func flips(seed: UInt64) throws {
    var tables = RandomTable(random: SplitMix64(seed: seed))
    for _ in 0..<10 {
      for file in try Self.files(&tables) {
        for _ in 0..<30 {
          var damaged = file
          for _ in 0..<tables.random.number(1...4) {
            damaged[tables.random.number(0...file.count - 1)] ^= 1 << tables.random.number(0...7)
          }
          Self.parse(damaged)
        }
      }
    }
  }

  @Test("repeated tokens take linear time", arguments: ["", "{", "a = ", "\"", "/*", "//", "a = \""])
  func worstCases(start: String) throws {
    for token in [
      "{", "}", ";", "a;", "a=b;", "\"a\"=\"b\";", "\"", "'", "\\", "\\0", "\\U", "\\ud800", "/", "//", "/*",
      "*/", "/**/",
      "/**/\n", "*", "=", "a", " ", "\n", "\r", "\u{2028}", "e\u{301}", "\u{301}", "//\n",
    ] {
      try LinearTime.check(repeating: token, after: start) {
        let parsed = StringTable.parse($0)
        _ = parsed.table.written()
      }
    }
  }

  @Test("tables of many keys take linear time")
  func manyKeys() throws {
    try LinearTime.check(name: "keys") { size in
      Array((0..<size / 32).map { "\"key \($0)\" = \"the value \($0)\";\n" }.joined().utf8)
    } parse: {
      let table = StringTable.parse($0).table
      #expect(StringTable.merge([table, table]).entries.count == table.entries.count)
    }
  }

  @Test(
    "formats of repeated tokens take linear time",
    arguments: ["%", "%#", "%#@", "%-", "%1$", "%1$#@a@", "%%", "%d", "%é", "%9"])
  func formats(token: String) throws {
    try LinearTime.check(repeating: token, largest: 1280 << 10) {
      _ = StringTable.text(of: String(decoding: $0, as: UTF8.self), arguments: [.integer(1)])
    }
  }
}
