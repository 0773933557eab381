import StringTables
import TestSupport
import Testing

/// Writing and merging tables.
@Suite struct StringsWriterTests {
  @Test("a written table is read back exactly", arguments: Seeds.chosen(10))
  func roundTrip(seed: UInt64) {
    var tables = RandomTable(random: SplitMix64(seed: seed))
    for round in 0..<500 {
      let entries = tables.entries(upTo: 8).map { entry in
        StringTable.Entry(key: entry.key, value: entry.value, comment: tables.comment())
      }
      let table = StringTable(entries)
      let parsed = StringTable.parse(table.written())
      #expect(parsed.error == nil && parsed.table == table, "seed \(seed), round \(round): \(table.entries)")
    }
  }

  @Test("the layout of a written table")
  func layout() {
    let table = StringTable([
      .init(key: "a", value: "b", comment: "// c"), .init(key: "é\"", value: "\\\n\t\r\u{1}\u{7F}"),
      .init(key: "x", value: "", comment: "plain */ text"),
    ])
    let expected = #"""
      // c
      "a" = "b";

      "é\"" = "\\\n\t\r\U0001\U007f";

      /* plain * / text */
      "x" = "";

      """#
    #expect(String(decoding: table.written(), as: UTF8.self) == expected)
    #expect(StringTable().written().isEmpty)
  }

  @Test("any text may be a comment", arguments: Seeds.chosen(4))
  func comments(seed: UInt64) {
    var tables = RandomTable(random: SplitMix64(seed: seed))
    for _ in 0..<500 {
      let comment = tables.text(upTo: 10)
      let table = StringTable([.init(key: "x", value: "y"), .init(key: "a", value: "b", comment: comment)])
      let parsed = StringTable.parse(table.written())
      #expect(parsed.error == nil && parsed.table.entries.count == 2, "\(comment)")
      #expect(
        parsed.table["a"] == "b" && parsed.table["x"] == "y" && parsed.table.entry(for: "x")?.comment == nil)
      #expect(StringTable.parse(parsed.table.written()).table == parsed.table, "\(comment)")
    }
  }

  @Test("the upper table wins key by key, and comments are kept")
  func merge() {
    let tables = [
      "b = upper; // trailing\n c = upper;", "/* a */ a = middle; /* b */ b = middle;",
      "/* c */ c = lower; d; e;",
    ].map { ParsedTable($0).table }
    let merged = StringTable.merge(tables)
    #expect(
      merged.entries.map { "\($0.key)=\($0.value)" } == ["b=upper", "c=upper", "a=middle", "d=d", "e=e"])
    #expect(merged.entries.map(\.comment) == ["// trailing", "/* c */", "/* a */", nil, nil])
    #expect(StringTable.merge([]) == StringTable() && StringTable.merge([tables[0]]) == tables[0])
  }

  @Test("merging is a search from the top", arguments: Seeds.chosen(4))
  func mergeModel(seed: UInt64) {
    var tables = RandomTable(random: SplitMix64(seed: seed))
    for _ in 0..<100 {
      let layers = (0..<tables.random.number(0...4)).map { _ in
        StringTable(
          (0..<10).map { _ in .init(key: "\(tables.random.number(0...12))", value: tables.text(upTo: 3)) })
      }
      let merged = StringTable.merge(layers)
      for key in (0...12).map({ "\($0)" }) {
        #expect(merged[key] == layers.lazy.compactMap { $0[key] }.first)
      }
    }
  }
}

extension RandomTable {
  /// Comments as the parser keeps them, or none.
  fileprivate mutating func comment() -> String? {
    let lines = (0..<random.number(0...2)).map { _ in
      let text = text(upTo: 6)
      if random.percent(50), !text.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D }) { return "//" + text }
      return "/*" + text.filter { $0 != "/" } + " */"
    }
    return lines.isEmpty ? nil : lines.joined(separator: "\n")
  }
}
