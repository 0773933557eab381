import Posix
import TestSupport
import Testing

/// A substitution over the resources that SwiftPM has built for `Bundle.module`.
extension MountTests {
  @Suite struct ModuleBundleTests {
    /// A package as in the guide `OverlayingBundleModule`.
    private static let files: [(ByteString, String)] = [
      (
        "Package.swift",
        """
        // swift-tools-version: 6.0
        import PackageDescription

        let package = Package(
          name: "Hello",
          defaultLocalization: "en",
          targets: [.executableTarget(name: "Hello", resources: [.process("Resources")])])
        """
      ),
      (
        "Sources/Hello/main.swift",
        """
        import Foundation

        if let logo = Bundle.module.url(forResource: "logo", withExtension: "txt") {
          print(try String(contentsOf: logo, encoding: .utf8))
        }
        print(Bundle.module.localizedString(forKey: "title", value: nil, table: nil))
        """
      ),
      ("Sources/Hello/Resources/logo.txt", "the logo as built"),
      ("Sources/Hello/Resources/en.lproj/Localizable.strings", "\"title\" = \"Built\"; \"quit\" = \"Quit\";"),
      ("Overrides/logo.txt", "my own logo"),
      ("Overrides/en.lproj/Localizable.strings", "\"title\" = \"Mine\";"),
    ]

    @Test("a program of any package has the substitution's resources", .timeLimit(.minutes(10)))
    func module() throws {
      let folder = try TemporaryFolder()
      for (path, content) in Self.files {
        try (folder.path / path).parent.makeDirectories()
        try (folder.path / path).write(content)
      }
      try Command("swift", "build", in: folder.path).check(timeout: 500)
      let program: ByteString = ".build/debug/Hello"
      func output(_ words: [ByteString]) throws -> String {
        try Command(words + [program], directory: folder.path).check().outputText
      }
      #expect(try output([]) == "the logo as built\nBuilt\n")
      let run: [ByteString] = [
        try Binary.underTest(), "run", "-o", "substitution=Overrides,strings=merge",
        ".build/debug/Hello_Hello.resources", "--",
      ]
      #expect(try output(run) == "my own logo\nMine\n")
      // The next run has what was edited; what was built is unchanged.
      try (folder.path / "Overrides/logo.txt").write("another logo")
      try (folder.path / "Overrides/en.lproj/Localizable.strings").remove()
      #expect(try output(run) == "another logo\nBuilt\n")
      #expect(try output([]) == "the logo as built\nBuilt\n")
    }
  }
}
