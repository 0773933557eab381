import PropertyLists
import StringTables
import TestSupport
import Testing

/// `.stringsdict` files.
@Suite struct PluralTableTests {
  private static func table(_ body: String) -> ParsedTable<PluralTable> {
    PluralTable.parse(Array("<plist version=\"1.0\"><dict>\(body)</dict></plist>".utf8))
  }

  /// An entry with variables: `name: one=…|other=…`.
  private static func entry(_ format: String, _ variables: [(String, [(String, String)])]) -> String {
    let parts = variables.map { name, forms in
      "<key>\(name)</key><dict><key>NSStringFormatSpecTypeKey</key><string>NSStringPluralRuleType</string>"
        + "<key>NSStringFormatValueTypeKey</key><string>d</string>"
        + forms.map { "<key>\($0.0)</key><string>\($0.1)</string>" }.joined() + "</dict>"
    }
    return
      "<key>k</key><dict><key>NSStringLocalizedFormatKey</key><string>\(format)</string>\(parts.joined())</dict>"
  }

  private static func text(
    _ format: String, _ variables: [(String, [(String, String)])], _ arguments: [FormatArgument],
    _ language: String = "en"
  ) -> String? {
    table(entry(format, variables)).table.text(for: "k", arguments: arguments, language: language)
  }

  @Test(
    "the form of the number's category",
    arguments: [
      (0, "en", "no files"), (1, "en", "1 file"), (2, "en", "2 files"), (-1, "en", "-1 file"),
      (0, "fr", "no files"),
      (2, "ja", "2 files"), (1, "ja", "1 files"), (3, "ru", "3 files"),
    ])
  func forms(number: Int64, language: String, expected: String) {
    let forms = [("zero", "no files"), ("one", "%d file"), ("other", "%d files")]
    #expect(Self.text("%#@n@", [("n", forms)], [.integer(number)], language) == expected)
  }

  @Test("few and many")
  func slavic() {
    let forms = [("one", "%d plik"), ("few", "%d pliki"), ("many", "%d plików"), ("other", "%d pliku")]
    let texts = [1, 2, 5, 12, 22, 112].map { Self.text("%#@n@", [("n", forms)], [.integer($0)], "pl") }
    #expect(texts == ["1 plik", "2 pliki", "5 plików", "12 plików", "22 pliki", "112 plików"])
  }

  @Test("several variables take the arguments in order, or by position")
  func positions() {
    let variables = [
      ("a", [("one", "%d A"), ("other", "%d As")]), ("b", [("one", "%d B"), ("other", "%d Bs")]),
    ]
    let arguments: [FormatArgument] = [.integer(1), .integer(2)]
    #expect(Self.text("%#@a@, %#@b@", variables, arguments) == "1 A, 2 Bs")
    #expect(Self.text("%2$#@a@, %1$#@b@", variables, arguments) == "2 As, 1 B")
    #expect(Self.text("%#@a@ of %@", variables, [.integer(3), .text("x")]) == "3 As of x")
    #expect(Self.text("%2$@: %1$#@a@", variables, [.integer(3), .text("x")]) == "x: 3 As")
  }

  @Test("a form may have variables")
  func nested() {
    let folders = ("folders", [("one", "one folder"), ("other", "%2$d folders")])
    let files = ("files", [("one", "a file in %2$#@folders@"), ("other", "%1$d files in %2$#@folders@")])
    #expect(
      Self.text("%1$#@files@", [files, folders], [.integer(1), .integer(1)]) == "a file in one folder")
    #expect(
      Self.text("%1$#@files@", [files, folders], [.integer(3), .integer(2)]) == "3 files in 2 folders")
    let next = ("n", [("other", "%d in %#@folders@")])
    #expect(Self.text("%#@n@", [next, folders], [.integer(5), .integer(1)]) == "5 in one folder")
  }

  @Test("what cannot be resolved stays as it is")
  func unresolved() {
    let variables = [("a", [("one", "%d A")])]
    for (format, arguments, expected) in [
      ("%#@b@", [.integer(1)], "%#@b@"), ("%#@a@", [], "%#@a@"), ("%#@a@", [.text("x")], "%#@a@"),
      ("%#@a@", [.integer(2)], "%#@a@"), ("%9$#@a@", [.integer(1)], "%9$#@a@"),
      ("%d %d", [.integer(1)], "1 %d"),
      ("%#@a", [.integer(1)], "%#@a"), ("100 %", [], "100 %"), ("100 %% %d", [.integer(1)], "100 % 1"),
    ] as [(String, [FormatArgument], String)] {
      #expect(Self.text(format, variables, arguments) == expected)
    }
  }

  @Test("forms that name each other do not recurse for ever")
  func recursion() throws {
    let own = try #require(Self.text("%#@a@", [("a", [("other", "x%1$#@a@%1$#@a@")])], [.integer(5)]))
    #expect(own.utf8.count < 10_000)
  }

  @Test("entries of other kinds are left out")
  func otherKinds() {
    let parsed = Self.table(
      "<key>a</key><string>x</string><key>b</key><dict/><key>c</key><dict><key>NSStringLocalizedFormatKey</key>"
        + "<string>%#@v@</string><key>v</key><dict><key>other</key><string>x</string></dict></dict>")
    #expect(parsed.error == nil && parsed.table.count == 1)
    #expect(parsed.table.text(for: "a", arguments: [], language: "en") == nil)
    #expect(parsed.table.text(for: "c", arguments: [.integer(1)], language: "en") == "%#@v@")
  }

  @Test("a malformed file has a position, and what precedes it is kept")
  func malformed() {
    let whole = Self.entry("%#@n@", [("n", [("other", "%d")])])
    let parsed = PluralTable.parse(Array("<plist><dict>\n\(whole)\n<key>x</key><dict>".utf8))
    #expect(parsed.table.text(for: "k", arguments: [.integer(7)], language: "en") == "7")
    #expect(parsed.error?.position?.line == 3)
  }
}
