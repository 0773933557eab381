import TestSupport
import Testing

@testable import Bundles

/// Inputs of one repeated token, at which a careless parser takes quadratic time or overflows its stack.
@Suite struct MIMETableWorstCaseTests {
  @Test("MIME tables: globs2", arguments: ["", "50:text/x:", "50:text/x:*."])
  func globs(start: String) throws {
    for token in [
      ":", "*", "?", "[", "[a", "[a]", "[!a-z]", "\\", "\n", "a", "50:text/x:*.a\n", "50:text/x:[a]*\n",
      "50:a/b:__NOGLOBS__\n",
    ] {
      try LinearTime.check(repeating: token, after: start, before: "\n") {
        let table = GlobTable(files: [$0])
        _ = table.type(for: Array(repeating: UInt8(ascii: "a"), count: 255))
        _ = table.type(for: Array("x.a".utf8))
      }
    }
  }

  @Test("MIME tables: mime.types, and names")
  func types() throws {
    for token in ["/", " ", "a/b c\n", "#", "\n", "a/b ", ".", "a"] {
      try LinearTime.check(repeating: token) { _ = ExtensionTable(files: [$0]).type(for: Array("x.c".utf8)) }
    }
    let types = MIMETypes()
    for token in [".", "a", "A.", ".png"] {
      try LinearTime.check(repeating: token) {
        _ = types.type(forName: $0)
        _ = MIMETypes.type(inAttribute: $0)
        _ = MIMETypes.type(ofContent: $0)
      }
    }
  }

  @Test("languages")
  func languages() throws {
    for token in ["-", "_", "a", "aa-", "zh-", ".lproj", "@", "."] {
      try LinearTime.check(repeating: token) {
        _ = Language.fallbacks(of: $0)
        _ = Language.folderNames(of: $0)
        _ = Language.localization(ofFolder: $0)
      }
    }
  }
}
