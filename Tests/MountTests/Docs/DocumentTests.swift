import TestSupport
import Testing

/// The commands of the README and the guides, run as a reader would.
extension MountTests {
  @Suite struct DocumentTests {
    private static let documents = [
      Readme.document, Recipes.document, LayerGuides.changing, LayerGuides.writing, LayerGuides.names,
    ]

    @Test("the tests know every block", .timeLimit(.minutes(1)), arguments: documents)
    func isKnown(_ document: Document) throws {
      let found = Set(try DocumentedBlocks(of: document).blocks.map(\.section))
      #expect(found == Set(document.sections.map(\.title)))
    }

    @Test("the commands do what the document says", .timeLimit(.minutes(5)), arguments: documents)
    func commands(_ document: Document) throws {
      let blocks = try DocumentedBlocks(of: document)
      for section in document.sections { try DocumentedRun(section, blocks.section(section.title)).run() }
    }

    @Test("the metrics that the queries name exist", .timeLimit(.minutes(1)))
    func metrics() throws {
      let recipes = try Recipes.document.text()
      let names = Set(recipes.matches(of: #/bundlefs_[a-z_]+/#).map(\.0).filter { $0.contains("_") })
      #expect(names.count >= 6)
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let printed = try Command([try Binary.underTest(), "metrics", mount.point]).check().outputText
        for name in names {
          let family = name.replacing(#/(_total|_bucket)$/#, with: "")
          #expect(printed.contains("# TYPE \(family) "), "\(name)")
        }
      }
    }

    @Test("the README and the help name the same commands", .timeLimit(.minutes(1)))
    func usage() throws {
      let help = try Command([try Binary.underTest(), "--help"]).check().outputText
      let usage = try DocumentedBlocks(of: Readme.document).section("Usage").flatMap(\.lines).joined(
        separator: "\n")
      let commands = Set(help.matches(of: #/(?m)^(?:usage: |  +)bundlefs ([a-z]+)\b/#).map(\.1))
      #expect(commands.count > 15)
      let words = Set(usage.split { !$0.isLowercase })
      #expect(commands.subtracting(words).isEmpty)
      let named = Set(usage.matches(of: #/(?m)^bundlefs ([a-z]+)\b/#).map(\.1))
      #expect(named.subtracting(commands).isEmpty)
    }
  }
}
