import Foundation
import PropertyLists
import StringTables
import TestSupport
import Testing

/// Random tables, judged by Foundation, by Python's plistlib, and by the generator of the text.
@Suite struct JudgeTests {
  @Test("texts in any style have the entries from which they were made", arguments: Seeds.chosen(10))
  func styles(seed: UInt64) throws {
    var tables = RandomTable(random: SplitMix64(seed: seed))
    for round in 0..<500 {
      let entries = tables.entries(upTo: 6)
      let text = tables.styled(entries)
      let parsed = StringTable.parse(Array(text.utf8))
      #expect(parsed.error == nil && parsed.table.entries.map(\.key) == entries.map(\.key), "\(text)")
      #expect(
        parsed.table.entries.map(\.value) == entries.map(\.value), "seed \(seed), round \(round): \(text)")
      // Foundation takes `\u` for `u`, and Swift's dictionaries composed letters for decomposed ones.
      guard !entries.isEmpty, Set(entries.map(\.key)).count == entries.count, !text.contains("\\u") else {
        continue
      }
      let list = try PropertyListSerialization.propertyList(from: Data(text.utf8), options: [], format: nil)
      let theirs = try #require(list as? [String: String])
      #expect(entries.allSatisfy { theirs[$0.key] == $0.value }, "\(text)")
    }
  }

  @Test("what is written is whole for Foundation", arguments: Seeds.chosen(2))
  func foundation(seed: UInt64) throws {
    var tables = RandomTable(random: SplitMix64(seed: seed))
    for _ in 0..<500 {
      let entries = tables.entries(upTo: 8)
      if entries.isEmpty { continue }
      let text = Data(StringTable(entries).written())
      let list = try PropertyListSerialization.propertyList(from: text, options: [], format: nil)
      let theirs = try #require(list as? [String: String])
      #expect(theirs.count == Set(entries.map(\.key)).count)
    }
  }

  @Test("the last of several entries counts, as in Foundation")
  func duplicates() throws {
    let text = "\"a\" = \"1\"; \"b\" = \"2\"; \"a\" = \"3\";"
    let list = try PropertyListSerialization.propertyList(from: Data(text.utf8), options: [], format: nil)
    #expect(list as? [String: String] == ["a": "3", "b": "2"])
    #expect(ParsedTable(text).summary == "a=3 b=2")
  }

  @Test("property lists as plistlib writes them", arguments: Seeds.chosen(2))
  func plistlib(seed: UInt64) throws {
    var tables = RandomTable(random: SplitMix64(seed: seed))
    let all = (0..<1000).map { _ in tables.entries(upTo: 8).filter(\.fitsXML) }
    let folder = try TemporaryFolder()
    let asked = try JSONEncoder().encode(all.map { $0.map { [$0.key, $0.value] } })
    try (folder / "tables.json").write(Array(asked))
    try Command(["python3", "-c", ByteString(Self.script), folder.path]).check()
    for format in ["xml", "binary"] {
      let lists = try (folder / ByteString(format)).read().split(separator: 0x0A).map { line in
        try #require(Data(base64Encoded: Data(line)))
      }
      try #require(lists.count == all.count)
      for (entries, list) in zip(all, lists) {
        let parsed = StringTable.parse(Array(list))
        #expect(parsed.error == nil && parsed.table == StringTable(entries), "\(format): \(entries)")
      }
    }
  }

  private static let script = """
    import base64, json, plistlib, sys
    tables = json.load(open(sys.argv[1] + "/tables.json"))
    for name, format in ("xml", plistlib.FMT_XML), ("binary", plistlib.FMT_BINARY):
      with open(sys.argv[1] + "/" + name, "wb") as file:
        for table in tables:
          file.write(base64.b64encode(plistlib.dumps(dict(table), fmt=format, sort_keys=False)) + b"\\n")
    """
}

extension StringTable.Entry {
  /// XML turns CR into LF, and plistlib refuses control characters.
  fileprivate var fitsXML: Bool { !(key + value).utf8.contains { $0 == 0x0D || $0 == 0x7F } }
}

extension RandomTable {
  /// A text with the entries in random styles.
  fileprivate mutating func styled(_ entries: [StringTable.Entry]) -> String {
    var text = space()
    for entry in entries {
      text += styled(entry.key) + space()
      if entry.value != entry.key || random.percent(50) {
        text += "=" + space() + styled(entry.value) + space()
      }
      text += ";" + space()
    }
    return random.percent(30) && !entries.isEmpty ? space() + "{" + text + "}" + space() : text
  }

  private mutating func space() -> String {
    random.pick(["", "", " ", "\n", "\r\n\t", "/* c; \" */", "// c = d;\n", " /**/ ", "\u{2028}"])
  }

  private mutating func styled(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) }
    if isPlain, !text.isEmpty, random.percent(40) { return text + " " }
    let quote: Unicode.Scalar = random.percent(20) ? "'" : "\""
    let characters = text.unicodeScalars.map { styled($0, quote: quote) }
    return String(quote) + characters.joined() + String(quote)
  }

  private mutating func styled(_ character: Unicode.Scalar, quote: Unicode.Scalar) -> String {
    if random.percent(10) {
      let units = String(character).utf16.map { String($0, radix: 16) }
      let prefix = random.pick(["\\U", "\\U", "\\U", "\\u"])
      return units.map { prefix + String(repeating: "0", count: 4 - $0.count) + $0 }.joined()
    }
    switch character {
    case quote, "\\": return "\\" + String(character)
    case "\n" where random.percent(50): return "\\n"
    case "\t" where random.percent(50): return "\\t"
    case "\r" where random.percent(50): return "\\r"
    case let ascii where ascii.isASCII && random.percent(10):
      let digits = String(ascii.value, radix: 8)
      return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
    default: return String(character)
    }
  }
}
