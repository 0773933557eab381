import StringTables
import Testing

/// What is left of a table that was saved.
@Suite struct SavedTableTests {
  private func difference(_ saved: String, below: String, base: String? = nil, own: String = "") -> String? {
    func table(_ text: String) -> StringTable { StringTable.parse(Array(text.utf8)).table }
    let saved = SavedTable(
      table(saved), below: table(below), base: base.map(table), own: table(own))
    return saved.difference.map { String(decoding: $0.written(), as: UTF8.self) }
  }

  @Test("comments count if they say something new")
  func comments() {
    let below = "/* one */ a = 1; /* two */ b = 2;"
    #expect(difference("a = 1; b = 2;", below: below, base: below) == "")
    #expect(difference("// two\n// one\na = 1; b = 2;", below: below, base: below) == "")
    #expect(difference("/* 1 */ a = 1; b = 2;", below: below, base: below) == "/* 1 */\n\"a\" = \"1\";\n")
    // It stays as long as it says so.
    let base = "/* 1 */ a = 1; /* two */ b = 2;"
    #expect(difference(base, below: below, base: base, own: "/* 1 */ a = 1;") == "/* 1 */\n\"a\" = \"1\";\n")
  }

  @Test("composed and decomposed letters differ")
  func codePoints() {
    #expect(difference("a = \"e\u{301}\";", below: "a = \"\u{E9}\";") == "\"a\" = \"e\u{301}\";\n")
  }

  @Test("a key that a layer below has lost or got meanwhile is not the program's")
  func changedBelow() {
    #expect(difference("a = 1; b = 2;", below: "b = 2; c = 3;", base: "a = 1; b = 2;") == "")
    #expect(difference("a = 1; b = 2;", below: "b = 2; c = 3;") == nil)
    #expect(
      difference("a = 1; b = 2;", below: "b = 2;", base: "a = 1; b = 2;", own: "a = 1;") == "\"a\" = \"1\";\n"
    )
    #expect(difference("a = 1;", below: "a = 2;", base: "a = 1;") == "")
  }

  @Test("the mark ends the merging, wherever a program moves it")
  func mark() {
    let whole = StringTable.whole(Array("a = 1;".utf8))
    let table = StringTable.parse(whole).table
    #expect(table.endsMerging && table.entries == [.init(key: "a", value: "1")])
    let other = StringTable([.init(key: "b", value: "2")])
    #expect(StringTable.merge([table, other]).entries == table.entries)
    #expect(StringTable.merge([other, table, other]).endsMerging == false)
    #expect(StringTable.parse(table.written()).table.endsMerging)
    let moved = "b = 2;\n\(StringTable.wholeMark)\n/* x */\na = 1;"
    #expect(difference(moved, below: "b = 2;") == "/* x */\n\"a\" = \"1\";\n")
  }
}
