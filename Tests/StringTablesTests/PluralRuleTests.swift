import Testing
import _FoundationICU

@testable import StringTables

/// The plural rules, judged by Foundation's ICU.
@Suite struct PluralRuleTests {
  /// Whole numbers around all boundaries of the rules.
  private static let numbers: [UInt64] =
    Array(0...1300) + [
      1999, 2000, 2001, 9999, 10_000, 10_001, 19_000, 20_000, 21_000, 40_000, 60_000, 80_000, 99_999,
    ]
    + [
      100_000, 100_001, 100_002, 101_000, 120_000, 200_000, 999_999, 1_000_000, 1_000_001, 1_000_021,
      1_100_000,
    ]
    + [2_000_000, 3_000_011, 10_000_000, 1_000_000_000]

  @Test("every language of ICU chooses the same categories")
  func agreement() throws {
    var compared = 0
    for index in 0..<swift_uloc_countAvailable() {
      guard let name = swift_uloc_getAvailable(index) else { continue }
      let locale = String(cString: name)
      compared += try compare(locale)
    }
    for language in [
      "bo", "dsb", "iu", "kw", "lag", "naq", "sat", "sh", "shi", "tl", "tzm", "pt_PT", "pt_BR", "xx",
    ] {
      compared += try compare(language)
    }
    #expect(compared > 200)
  }

  private func compare(_ locale: String) throws -> Int {
    var status = U_ZERO_ERROR
    let rules = swift_uplrules_open(locale, &status)
    defer { swift_uplrules_close(rules) }
    guard status.rawValue <= U_ZERO_ERROR.rawValue, rules != nil else { return 0 }
    for number in Self.numbers {
      var text = [UChar](repeating: 0, count: 16)
      let count = swift_uplrules_select(rules, Double(number), &text, 16, &status)
      let theirs = String(decoding: text[..<Int(count)], as: UTF16.self)
      let ours = PluralCategory(ofMagnitude: number, in: locale)
      if ours.rawValue != theirs {
        Issue.record("\(locale) \(number): \(ours) instead of \(theirs)")
        break
      }
    }
    return 1
  }

  @Test(
    "names of languages",
    arguments: [
      ("fr", 0, PluralCategory.one), ("FR-ca", 1, .one), ("en", 0, .other), ("en_US", 1, .one),
      ("pt", 0, .one),
      ("pt-PT", 0, .other), ("pt_pt", 1, .one), ("ja", 1, .other), ("", 1, .other), ("-", 1, .other),
      ("xx", 1, .other),
      ("ru-Cyrl-RU", 3, .few), ("ar", 0, .zero), ("ar", 11, .many), ("cy", 6, .many), ("he", 2, .two),
    ])
  func names(language: String, number: Int64, expected: PluralCategory) {
    #expect(PluralCategory(of: number, in: language) == expected)
    #expect(PluralCategory(of: -number, in: language) == expected)
  }

  @Test("the largest numbers")
  func extremes() {
    for language in ["en", "fr", "ru", "ar", "br", "kw", "lv", "fil"] {
      _ = PluralCategory(of: .min, in: language)
      _ = PluralCategory(ofMagnitude: .max, in: language)
    }
    #expect(PluralCategory(of: .min, in: "ru") == .many)
  }
}
