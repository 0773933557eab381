import StringTables
import TestSupport
import Testing

@Suite struct TableDifferenceTests {
  private func table(_ text: String) -> StringTable {
    let parsed = ParsedTable(text)
    #expect(parsed.error == nil)
    return parsed.table
  }

  @Test func changedAndNewKeysAreKeptWithTheirComments() {
    let below = table("/* one */\na = 1;\n/* two */\nb = 2;\nc = 3;")
    let wanted = table("/* new */\nd = 4;\n/* one */\na = 1;\n/* two */\nb = 20;\n/* three */\nc = 3;")
    let difference = wanted.difference(from: below)
    #expect(!difference.lacksKeys)
    #expect(difference.table == table("/* new */\nd = 4;\nb = 20;\n/* three */\nc = 3;"))
    #expect(below.difference(from: below).table.entries.isEmpty)
    #expect(table("a = 1;").difference(from: below).lacksKeys)
  }

  @Test func keysAreComparedByTheirCodePoints() {
    let difference = table("\"é\" = 1;").difference(from: table("\"e\u{301}\" = 1;"))
    #expect(difference.lacksKeys && difference.table.entries.count == 1)
  }

  @Test("a complete table is recognized in every encoding, and its comment is no key's")
  func complete() {
    let text = "/* note */\n\"a\" = \"größer\";\n"
    var wide: [UInt8] = [0xFF, 0xFE]
    for unit in text.utf16 { wide += [UInt8(truncatingIfNeeded: unit), UInt8(unit >> 8)] }
    let list = Array("<?xml version=\"1.0\"?><plist><dict><key>a</key><string>b</string></dict></plist>".utf8)
    for content in [Array(text.utf8), wide, list, []] {
      #expect(!StringTable.isComplete(content))
      let marked = StringTable.complete(content)
      #expect(StringTable.isComplete(marked))
      #expect(
        marked.starts(with: content.prefix(2)) || content.count < 2 || content == Array(text.utf8)
          || content == list)
      let parsed = StringTable.parse(marked)
      #expect(parsed.error == nil)
      #expect(parsed.table.withoutCompletenessComment == StringTable.parse(content).table)
    }
    #expect(StringTable.isComplete(Array("\n/* bundlefs: complete table, by hand */".utf8)))
    #expect(!StringTable.isComplete(Array("a = \"/* bundlefs: complete table */\";".utf8)))
  }

  @Test(
    "merging the difference gives what was wanted, and no key that is the same is kept",
    arguments: Seeds.chosen(20))
  func model(seed: UInt64) {
    var tables = RandomTable(random: SplitMix64(seed: seed))
    for _ in 0..<200 {
      let layers = (0..<2).map { _ in StringTable(tables.entries(upTo: 8)) }
      let below = StringTable.merge(layers)
      var wanted: [StringTable.Entry] = []
      for var entry in below.entries {
        switch tables.random.number(0...9) {
        case 0: continue
        case 1, 2: entry.value = tables.text(upTo: 12)
        case 3: entry.comment = "/* \(tables.random.number(0...9)) */"
        default: break
        }
        wanted.append(entry)
      }
      wanted += tables.entries(upTo: 3)
      let table = StringTable(wanted)
      let difference = table.difference(from: below)
      let isLacking = below.entries.contains { table[$0.key] == nil }
      #expect(difference.lacksKeys == isLacking, "seed \(seed)")
      for entry in difference.table.entries {
        #expect(entry.value != below[entry.key] || entry.comment != nil, "seed \(seed)")
      }
      if isLacking { continue }
      let stored = StringTable.parse(difference.table.written())
      let merged = StringTable.merge([stored.table, below])
      #expect(stored.error == nil && merged.entries.count == table.entries.count, "seed \(seed)")
      for entry in table.entries { #expect(merged[entry.key] == entry.value, "seed \(seed)") }
    }
  }
}
