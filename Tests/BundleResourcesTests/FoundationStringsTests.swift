import BundleResources
import Foundation
import TestSupport
import Testing

/// One layer alone has the strings that Foundation's Bundle finds in it.
@Suite struct FoundationStringsTests {
  @Test("the same strings as Foundation's Bundle", arguments: Seeds.chosen(2))
  func agreement(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let pieces = ["a", "b", "\\n", "\\\"", "\\U00e9", "é", "%@", ";", "=", "//", "\\\\", "'", "\n"]
    for _ in 0..<50 {
      let fixture = try ResourceFixture()
      var text = "/* comment */\n"
      for index in 0..<random.number(1...12) {
        let value = (0..<random.number(0...5)).map { _ in random.pick(pieces) }.joined()
        text += random.pick(["k\(index)", "\"k\(index)\"", "'k\(index % 3)'"])
        text += random.pick([" = \"\(value)\";\n", "=v\(index);", "; // c\n", " = /* d */ 'x' ;"])
      }
      try fixture.make("T.strings", text)
      try fixture.make("Localizable.strings", text + "\"default\" = \"x\";")
      let ours = try LayeredBundle(main: fixture.main.url)
      let theirs = try #require(Bundle(path: fixture.main.text))
      for key in (0..<14).map({ "k\($0)" }) + ["default", "none"] {
        for (value, table) in [(nil, "T"), ("other", "T"), ("", nil), (nil, nil)] as [(String?, String?)] {
          #expect(
            ours.localizedString(forKey: key, value: value, table: table)
              == theirs.localizedString(forKey: key, value: value, table: table), "\(key) in \(text)")
        }
      }
    }
  }
}
