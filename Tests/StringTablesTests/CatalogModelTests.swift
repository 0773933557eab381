import Foundation
import StringTables
import TestSupport
import Testing

/// What a catalog should have for a key in a language.
private enum ModelText {
  case missing
  case plain(String)
  /// One text for each device.
  case devices([String: String])
  case plural([String: String])
}

/// A random catalog, its file, and what is expected of it.
private struct RandomCatalog {
  var texts: [String: [String: ModelText]] = [:]
  let source: String

  static let languages = ["en", "fr", "ja", "pt-BR"]
  private static let pieces = [
    "a", "é", "\"", "\\", "\n", "\u{1}", "😀", "%%", " ", "e\u{301}", "/", "{", "}",
  ]

  init(_ random: inout SplitMix64) {
    source = random.pick(Self.languages)
    for _ in 0..<random.number(0...6) {
      let key = Self.text(&random)
      texts[key] = [:]
      for language in Self.languages where random.percent(60) {
        texts[key]?[language] = Self.modelText(&random)
      }
    }
  }

  private static func text(_ random: inout SplitMix64) -> String {
    (0..<random.number(0...4)).map { _ in random.pick(pieces) }.joined()
  }

  private static func modelText(_ random: inout SplitMix64) -> ModelText {
    func choices(_ names: [String], _ random: inout SplitMix64) -> [String: String] {
      var chosen: [String: String] = [:]
      for name in names where random.percent(60) { chosen[name] = text(&random) + "%lld" }
      chosen[random.pick(names)] = "%lld"
      return chosen
    }
    switch random.number(0...3) {
    case 0: return .missing
    case 1: return .plain(text(&random))
    case 2: return .devices(choices(["iphone", "ipad", "mac", "other"], &random))
    default: return .plural(choices(["one", "other"], &random))
    }
  }

  /// The file, written by Foundation.
  func file() throws -> [UInt8] {
    let strings = texts.mapValues { localizations in
      ["comment": "c", "localizations": localizations.mapValues(Self.localization)] as [String: Any]
    }
    let content: [String: Any] = ["sourceLanguage": source, "version": "1.0", "strings": strings]
    return Array(try JSONSerialization.data(withJSONObject: content))
  }

  private static func localization(_ text: ModelText) -> [String: Any] {
    func unit(_ value: String) -> [String: Any] { ["stringUnit": ["state": "translated", "value": value]] }
    switch text {
    case .missing: return [:]
    case .plain(let value): return unit(value)
    case .devices(let texts): return ["variations": ["device": texts.mapValues(unit)]]
    case .plural(let texts): return ["variations": ["plural": texts.mapValues(unit)]]
    }
  }

  /// The text for a number, by rules that are written down here once more.
  func expected(_ key: String, _ language: String, _ number: Int, device: String?) -> String? {
    func filled(_ format: String) -> String {
      format.replacingOccurrences(of: "%lld", with: "\(number)").replacingOccurrences(of: "%%", with: "%")
    }
    switch texts[key]?[language] ?? .missing {
    case .missing: return nil
    case .plain(let text): return filled(text)
    case .devices(let texts):
      let devices = [device ?? "other", "other", "mac", "iphone", "ipad"]
      return devices.lazy.compactMap { texts[$0] }.first.map(filled)
    case .plural(let texts):
      let isOne = language == "ja" ? false : language == "en" ? number == 1 : number < 2
      return (isOne ? texts["one"] : nil).map(filled) ?? (texts["other"] ?? texts["one"]).map(filled)
    }
  }
}

/// Random catalogs against a model, and damaged ones.
@Suite struct CatalogModelTests {
  @Test("random catalogs have the texts of the model", arguments: Seeds.chosen(4))
  func model(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<TestLength.of(full: 2500, brief: 500) {
      let model = RandomCatalog(&random)
      let device = random.pick([nil, "iphone", "mac"])
      let parsed = StringCatalog.parse(try model.file(), for: TextVariant(device: device))
      #expect(parsed.error == nil && parsed.table.sourceLanguage == model.source)
      for key in model.texts.keys {
        for language in RandomCatalog.languages {
          for number in [0, 1, 5] {
            let tables = parsed.table[language]
            let text =
              tables?.plurals.text(for: key, arguments: [.integer(Int64(number))], language: language)
              ?? tables?.strings[key].map { StringTable.text(of: $0, arguments: [.integer(Int64(number))]) }
            let expected = model.expected(key, language, number, device: device)
            #expect(text == expected, "\(seed): \(key) in \(language)")
          }
        }
        let isUntranslated = model.expected(key, model.source, 0, device: device) == nil
        #expect((parsed.table.untranslated[key] == key) == isUntranslated)
      }
    }
  }

  @Test("damaged catalogs never trap, and keep what precedes the damage", arguments: Seeds.chosen(4))
  func damage(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<TestLength.of(full: 2500, brief: 250) {
      let model = RandomCatalog(&random)
      let whole = try model.file()
      let cut = StringCatalog.parse(Array(whole.prefix(random.number(0...whole.count - 1))))
      #expect(cut.error != nil)
      for key in cut.table.untranslated.entries.map(\.key) { #expect(model.texts[key] != nil) }
      let damaged = Self.damaged(whole, &random)
      for content in [damaged, Array(damaged.reversed())] { Self.use(content, Array(model.texts.keys)) }
    }
  }

  private static func damaged(_ whole: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    var damaged = whole
    for _ in 0..<random.number(1...4) {
      let index = random.number(0...damaged.count - 1)
      switch random.number(0...2) {
      case 0: damaged[index] ^= 1 << random.number(0...7)
      case 1: damaged[index] = random.pick(Array("{}[]\",:\\u0e-%".utf8))
      default: damaged.replaceSubrange(index..<index, with: damaged.suffix(random.number(0...20)))
      }
    }
    return damaged
  }

  private static func use(_ content: [UInt8], _ keys: [String]) {
    let catalog = StringCatalog.parse(content).table
    _ = StringCatalog.parse(locTable: content)
    for language in catalog.languages {
      for entry in catalog[language]?.strings.entries ?? [] {
        _ = StringTable.text(of: entry.value, arguments: [.integer(.min)])
      }
      for key in keys {
        _ = catalog[language]?.plurals.text(for: key, arguments: [.integer(2)], language: language)
      }
    }
  }

  @Test(
    "repeated tokens take linear time",
    arguments: ["", "{", "{\"strings\":", "{\"strings\":{\"k\":", "{\"k\":\""])
  func worstCases(start: String) throws {
    for token in [
      "{", "[", "\"", "\\", "\\u", "\\ud800", "{\"a\":", "\"a\":{},", "[],", ",", ":", "1", "1,", "e\u{301}",
      " ", "\n",
      "true,", "{}",
    ] {
      try LinearTime.check(repeating: token, after: start) { _ = StringCatalog.parse($0) }
    }
  }

  @Test("catalogs of many keys, languages and variations take linear time", arguments: 0...3)
  func large(kind: Int) throws {
    try LinearTime.check(name: "kind \(kind)", largest: 1280 << 10) { size in
      let unit = #"{"stringUnit":{"value":"v"}}"#
      func members(_ each: (Int) -> String) -> String { (0..<size / 40).map(each).joined(separator: ",") }
      let localizations =
        switch kind {
        case 0: "{}"
        case 1: "{" + members { "\"l\($0)\":\(unit)" } + "}"
        case 2: #"{"fr":{"variations":{"device":{"# + members { "\"d\($0)\":\(unit)" } + "}}}}"
        default:
          #"{"fr":{"stringUnit":{"value":"x"},"substitutions":{"# + members { "\"s\($0)\":\(unit)" } + "}}}"
        }
      let keys =
        kind == 0
        ? members { "\"k\($0)\":{\"localizations\":{\"fr\":\(unit)}}" }
        : "\"k\":{\"localizations\":\(localizations)}"
      return Array("{\"strings\":{\(keys)}}".utf8)
    } parse: {
      #expect(StringCatalog.parse($0).error == nil)
    }
  }
}
