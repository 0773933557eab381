import Foundation
import Posix
import TestSupport
import Testing

/// The code in the tutorial is that of the example program.
@Suite struct TutorialTests {
  private static let package = ByteString(#filePath).parent.parent.parent
  private static let catalog = package / "Sources/BundleResources/BundleResources.docc"
  private static let folders: [ByteString] = [
    "Resources", "Resources/Bundle", "Resources/Example", "Resources/Steps",
  ]

  private let tutorial: String

  init() throws { tutorial = try (Self.catalog / "Tutorials/Greeter.tutorial").readText() }

  /// The resource of a name that a directive has.
  private func resource(_ name: some StringProtocol) throws -> String {
    let paths = Self.folders.map { Self.catalog / $0 / ByteString(String(name)) }
    let path = try #require(paths.first { $0.exists }, "\(name)")
    // Follows links, which those to the example are.
    return try String(contentsOfFile: path.text, encoding: .utf8)
  }

  @Test("has every file of the program and of its bundle")
  func isComplete() throws {
    let shown = try tutorial.matches(of: /file: "([^"]+)"/).map { try resource($0.1) }
    let bundle = GreeterFixture.bundle
    var folders = [bundle.parent, bundle]
    folders += ["en.lproj", "fr.lproj"].map { bundle / $0 }
    var count = 0
    for path in try folders.flatMap({ folder in try folder.names().map { folder / $0 } })
    where try path.status().kind == .regular {
      #expect(shown.contains(try path.readText()), "\(path)")
      count += 1
    }
    #expect(count == 15)
  }

  @Test("each version of a file only adds lines to the one before")
  func stepsAdd() throws {
    let steps = tutorial.matches(of: /file: "([^"]+)", previousFile: "([^"]+)"/)
    #expect(steps.count == 5)
    for step in steps {
      var rest = try resource(step.1).split(separator: "\n", omittingEmptySubsequences: false)[...]
      for line in try resource(step.2).split(separator: "\n", omittingEmptySubsequences: false) {
        let index = try #require(rest.firstIndex(of: line), "\(step.1) lacks: \(line)")
        rest = rest[(index + 1)...]
      }
    }
  }
}
