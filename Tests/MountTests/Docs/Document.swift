import TestSupport

/// A Markdown file, with what a test does with the code in it.
struct Document: Sendable, CustomStringConvertible {
  /// Relative to the package's folder.
  let path: ByteString
  /// Those that have code.
  let sections: [DocumentedSection]

  /// - Parameter name: `README.md`, or the name of one of the guides of `Volume`.
  init(_ name: ByteString, sections: [DocumentedSection]) {
    path = name == "README.md" ? name : "Sources/Volume/Volume.docc" / name
    self.sections = sections
  }

  /// Its text.
  func text(file: String = #filePath) throws -> String {
    try (ByteString(file).parent.parent.parent.parent / path).readText()
  }

  var description: String { path.lastComponent.text }
}

extension String {
  /// Commands that make the directories of the README's first session.
  static let firstSession = """
    mkdir -p App.app/Resources/fr.lproj Overrides/Resources mnt
    echo 'the logo as shipped'      > App.app/Resources/logo.svg
    echo '"greeting" = "Bonjour";'  > App.app/Resources/fr.lproj/Main.strings
    echo 'my own logo'              > Overrides/Resources/logo.svg

    """

  /// And mount them.
  static let firstMount = firstSession + "bundlefs App.app mnt -o substitution=Overrides\n"
}
