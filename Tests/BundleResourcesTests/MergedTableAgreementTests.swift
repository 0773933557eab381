import BundleResources
import Foundation
import Posix
import StringTables
import TestSupport
import Testing

/// A bundle and a mount with `strings=merge` have the same strings of the same layers.
@Suite(.serialized) struct MergedTableAgreementTests {
  private static let languages = ["fr", "en", "pt-BR"]
  private static let keys = (0..<8).map { "k\($0)" }

  @Test("random tables and catalogs", .timeLimit(.minutes(5)), arguments: Seeds.chosen(12))
  func agreement(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let folder = try TemporaryFolder()
    let layers = try (0..<3).map { try folder.folder(ByteString("layer\($0)")) }
    for layer in layers { try fill(layer, &random) }
    // Only what a file has is merged.
    for language in Self.languages {
      let table = layers[2] / ByteString("\(language).lproj/Main.strings")
      table.removeTree()
      try table.write("\"base\" = \"b\";\n")
    }
    var setup = MountSetup(
      main: layers[2], point: try folder.folder("mount"), substitutions: Array(layers[..<2]))
    setup.options = ["strings=merge"]
    let urls = layers.map { URL(fileURLWithPath: $0.text, isDirectory: true) }
    let bundle = try LayeredBundle(main: urls[2], substitution: Array(urls[..<2]))
    try withMount(setup) { mount in
      for language in Self.languages {
        let path = mount.point / ByteString("\(language).lproj/Main.strings")
        guard path.exists else { continue }
        let text = try path.readText()
        let table = try PropertyListSerialization.propertyList(from: Data(text.utf8), format: nil)
        let shown = try #require(table as? [String: String])
        for key in Self.keys {
          let expected = bundle.localizedString(forKey: key, table: "Main", localization: language)
          #expect(shown[key] ?? key == expected, "seed \(seed): \(language) \(key)\n\(text)")
        }
      }
    }
  }

  private func fill(_ layer: ByteString, _ random: inout SplitMix64) throws {
    for language in Self.languages {
      let folder = layer / ByteString("\(language).lproj")
      try folder.makeDirectory()
      let table = folder / "Main.strings"
      switch random.number(0...5) {
      case 0: try table.makeWhiteout()
      case 1: try (folder / ".wh..wh..opq").write("")
      case 2: break
      default:
        let lines = (0..<3).map { _ in "\"\(random.pick(Self.keys))\" = \"t\(random.number(0...999))\";\n" }
        let comment = random.percent(20) ? StringTable.completenessComment + "\n" : ""
        try table.write(comment + lines.joined())
      }
    }
    if random.percent(15) { return try (layer / "Main.xcstrings").makeWhiteout() }
    if random.percent(20) { return }
    var strings: [String: Any] = [:]
    for key in Self.keys where random.percent(50) {
      let spelled = ["fr", "en", random.percent(50) ? "pt-BR" : "pt_BR"].filter { _ in random.percent(60) }
      let texts = spelled.map { ($0, text(&random)) }
      strings[key] = ["localizations": Dictionary(uniqueKeysWithValues: texts)]
    }
    let catalog: [String: Any] = ["sourceLanguage": "en", "version": "1.0", "strings": strings]
    try (layer / "Main.xcstrings").write([UInt8](JSONSerialization.data(withJSONObject: catalog)))
  }

  private func text(_ random: inout SplitMix64) -> [String: Any] {
    func unit(_ random: inout SplitMix64) -> [String: Any] {
      let state = random.percent(10) ? "new" : "translated"
      return ["stringUnit": ["state": state, "value": "c\(random.number(0...999))"]]
    }
    switch random.number(0...3) {
    case 0: return ["variations": ["plural": ["one": unit(&random), "other": unit(&random)]]]
    case 1: return ["variations": ["device": ["ipad": unit(&random), "other": unit(&random)]]]
    default: return unit(&random)
    }
  }
}
