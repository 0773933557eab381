import PropertyLists
import StringTables
import TestSupport
import Testing

/// `.xcstrings` and `.loctable` files.
@Suite struct CatalogTests {
  private static func catalog(_ strings: String, _ variant: TextVariant = TextVariant()) -> StringCatalog {
    let parsed = StringCatalog.parse(
      Array(#"{"sourceLanguage":"en","strings":{\#(strings)},"version":"1.0"}"#.utf8), for: variant)
    #expect(parsed.error == nil)
    return parsed.table
  }

  private static func unit(_ value: String, _ state: String = "translated") -> String {
    #""stringUnit":{"state":"\#(state)","value":"\#(value)"}"#
  }

  private static func plural(_ forms: [(String, String)]) -> String {
    #""variations":{"plural":{"# + forms.map { "\"\($0)\":{\(unit($1))}" }.joined(separator: ",") + "}}"
  }

  private static func entry(_ localizations: String) -> String {
    #""k":{"localizations":{\#(localizations)}}"#
  }

  private static func text(
    _ localization: String, _ arguments: [FormatArgument], _ language: String = "fr",
    _ variant: TextVariant = TextVariant()
  ) -> String? {
    let tables = catalog(entry("\"\(language)\":{\(localization)}"), variant)[language]
    return tables?.plurals.text(for: "k", arguments: arguments, language: language)
      ?? tables?.strings["k"].map { StringTable.text(of: $0, arguments: arguments) }
  }

  @Test("texts by language, with the comment, whatever the state of the key")
  func texts() {
    let catalog = Self.catalog(
      """
      "a":{"comment":"c","extractionState":"stale","localizations":{"fr":{\(Self.unit("é\\n\\u00e9"))},
      "en":{\(Self.unit("A", "new"))}}}, "b":{}, "c":{"shouldTranslate":false,
      "localizations":{"de":{\(Self.unit("C"))},"fr":{\(Self.unit("C", "new"))}}}
      """)
    #expect(catalog.languages == ["de", "en", "fr"] && catalog.sourceLanguage == "en")
    #expect(catalog["fr"]?.strings.entries == [.init(key: "a", value: "é\né", comment: "c")])
    #expect(catalog["en"]?.strings["a"] == "A" && catalog["de"]?.strings["c"] == "C")
    #expect(catalog["it"] == nil)
    // What the source language lacks.
    #expect(catalog.untranslated.entries.map(\.key) == ["b", "c"] && catalog.untranslated["b"] == "b")
  }

  @Test("the source language may stand at the end, and is English without it")
  func source() {
    let strings = #""strings":{"k":{"localizations":{"de":{\#(Self.unit("K", "new"))}}}}"#
    for (text, language) in [("{\(strings),\"sourceLanguage\":\"de\"}", "de"), ("{\(strings)}", "en")] {
      let catalog = StringCatalog.parse(Array(text.utf8)).table
      #expect(catalog.sourceLanguage == language)
      #expect((catalog["de"]?.strings["k"] != nil) == (language == "de"))
      #expect((catalog.untranslated["k"] == nil) == (language == "de"))
    }
  }

  @Test("plural forms of a whole text are chosen by its first number")
  func plurals() {
    let forms = Self.plural([("one", "un fichier dans %2$@"), ("other", "%lld fichiers dans %@")])
    #expect(Self.text(forms, [.integer(0), .text("d")]) == "un fichier dans d")
    #expect(Self.text(forms, [.integer(2), .text("d")]) == "2 fichiers dans d")
    #expect(Self.text(forms, [.number(2.5), .text("d")]) == "2.5 fichiers dans d")
    let second = Self.plural([("one", "%@ a un chat"), ("other", "%@ a %lld chats")])
    #expect(Self.text(second, [.text("Zoé"), .integer(1)]) == "Zoé a un chat")
    #expect(Self.text(second, [.text("Zoé"), .integer(3)]) == "Zoé a 3 chats")
    let without = Self.plural([("one", "un chat"), ("other", "des chats")])
    #expect(
      Self.text(without, [.text("x"), .integer(1)]) == "un chat" && Self.text(without, []) == "des chats")
    // In a plain look-up the text of most numbers.
    #expect(
      Self.catalog(Self.entry("\"fr\":{\(forms)}"))["fr"]?.plurals["k"]?.format == "%lld fichiers dans %@")
  }

  @Test("substitutions")
  func substitutions() {
    func substitution(_ name: String, _ number: Int, _ forms: [(String, String)]) -> String {
      #""\#(name)":{"argNum":\#(number),"formatSpecifier":"lld",\#(Self.plural(forms))}"#
    }
    let files = substitution("files", 1, [("one", "%arg file"), ("other", "%arg files, 100%% %arg")])
    let folders = substitution("folders", 2, [("one", "a folder"), ("other", "%arg folders")])
    let localization =
      Self.unit("%#@folders@: %#@files@") + ",\"substitutions\":{\(files),\(folders)}"
    #expect(Self.text(localization, [.integer(1), .integer(2)], "en") == "2 folders: 1 file")
    #expect(Self.text(localization, [.integer(5), .integer(1)], "en") == "a folder: 5 files, 100% 5")
  }

  @Test("variations for devices and widths, also around plural forms")
  func variations() {
    func choices(_ kind: String, _ texts: [(String, String)]) -> String {
      #""variations":{"\#(kind)":{"# + texts.map { "\"\($0)\":{\($1)}" }.joined(separator: ",") + "}}"
    }
    let forms = Self.plural([("one", "tap"), ("other", "%lld taps")])
    let devices = choices(
      "device", [("iphone", forms), ("mac", Self.unit("click")), ("other", Self.unit("do"))])
    for (device, expected) in [("iphone", "2 taps"), ("mac", "click"), ("ipad", "do"), (nil, "do")] {
      #expect(Self.text(devices, [.integer(2)], "en", TextVariant(device: device)) == expected)
    }
    let apple = choices("device", [("applewatch", Self.unit("watch")), ("ipad", Self.unit("pad"))])
    #expect(Self.text(apple, []) == "pad")
    let widths = choices(
      "width", [("1", Self.unit("s")), ("70", Self.unit("long")), ("20", Self.unit("mid"))])
    for (width, expected) in [(0, "s"), (10, "s"), (20, "mid"), (25, "mid"), (70, "long"), (nil, "long")] {
      #expect(Self.text(widths, [], "en", TextVariant(width: width)) == expected)
    }
  }

  @Test(
    "errors have a position, and the keys before them count",
    arguments: [
      (#"{"strings":{"a":{},"b":{]"#, "1:25: a key in quotation marks is missing"),
      (#"{"strings":{"a":{} "b":{}}}"#, "1:20: ',' or '}' is missing"),
      (#"{"strings":{"a":{},"#, "1:20: a key in quotation marks is missing"),
      (#"{"strings":{"a":{},"b"#, "1:20: a string is not closed"),
      (#"{"strings":{"a":{}}}x"#, "1:21: text after the end"),
      ("{\"strings\":{\"a\":{},\n\"b\":\"\\x\"}}", "2:8: an unknown escape sequence"),
      (#"{"strings":{"a":{},"b":1-1}}"#, "1:24: not a number"),
    ])
  func errors(text: String, expected: String) {
    let parsed = StringCatalog.parse(Array(text.utf8))
    #expect(parsed.error?.description == expected)
    #expect(parsed.table.untranslated.entries.map(\.key) == ["a"])
  }

  @Test("other texts, deep ones and other encodings")
  func others() {
    for text in ["", "[]", "{\"strings\":[]}", "{\"strings\":1}", "x", "\"\"", "null"] {
      #expect(StringCatalog.parse(Array(text.utf8)).error != nil, "\(text)")
    }
    let deep = String(repeating: "{\"a\":", count: 100_000)
    #expect(StringCatalog.parse(Array(deep.utf8)).error?.reason == "more than 64 levels")
    let malformed = StringCatalog.parse(
      Array("{\"strings\":{\"a\":{},\"".utf8) + [0xFF] + Array("\":{}}}".utf8))
    #expect(malformed.error?.reason == "a character that is not valid UTF-8")
    #expect(malformed.table.untranslated["a"] == "a")
    let wide = "{\"strings\":{\"é\":{}}}".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    #expect(StringCatalog.parse([0xFF, 0xFE] + wide).table.untranslated["é"] == "é")
    let surrogates = StringCatalog.parse(Array(#"{"strings":{"\ud83d\ude00\ud83d":{}}}"#.utf8))
    #expect(surrogates.table.untranslated["😀\u{FFFD}"] != nil)
  }

  @Test("tables of several languages")
  func locTables() {
    let text = """
      { LocProvenance = { fr = 1; }; en = { a = A; }; fr = { a = B; k = { NSStringLocalizedFormatKey = "%#@n@";
      n = { NSStringFormatSpecTypeKey = NSStringPluralRuleType; one = "un"; other = "%d"; }; }; }; }
      """
    let parsed = StringCatalog.parse(locTable: Array(text.utf8))
    #expect(parsed.error == nil && parsed.table.languages == ["en", "fr"])
    #expect(parsed.table.sourceLanguage == nil && parsed.table["fr"]?.strings["a"] == "B")
    let plurals = parsed.table["fr"]?.plurals
    #expect(plurals?.text(for: "k", arguments: [.integer(0)], language: "fr") == "un")
    #expect(StringCatalog.parse(locTable: Array("x".utf8)).error != nil)
  }

  @Test("rules of stringsdict files for devices and widths")
  func rules() {
    let text = """
      { d = { NSStringDeviceSpecificRuleType = { mac = click; iphone = { NSStringLocalizedFormatKey = "%#@n@";
      n = { NSStringFormatSpecTypeKey = NSStringPluralRuleType; other = "%d taps"; }; }; }; };
      w = { NSStringVariableWidthRuleType = { 5 = s; 50 = "long"; x = none; }; }; }
      """
    let cases =
      [(nil, nil, ["click", "long"]), ("iphone", 20, ["2 taps", "s"])] as [(String?, Int?, [String])]
    for (device, width, expected) in cases {
      let table = PluralTable.parse(Array(text.utf8), for: TextVariant(device: device, width: width)).table
      #expect(["d", "w"].map { table.text(for: $0, arguments: [.integer(2)], language: "en") } == expected)
    }
  }
}
