import Glibc
import Posix
import TestSupport
import Testing

/// A mount on which options are tried.
struct OptionTrial {
  let tree: OptionTree
  /// Where a program sees the merged view.
  let view: ByteString
  /// The options on trial, as the manual writes them.
  let options: [OptionOnTrial]
  /// nil in a mount for one program.
  let mount: Mount?
  /// Counts the times that all is checked.
  var round = 0

  func has(_ text: String) -> Bool { options.contains { $0.text == text } }

  var isReadOnly: Bool { has("ro") }

  /// Checks each option, and that changes of layers are visible.
  func expectAll() throws {
    for option in options { try option.check(self) }
    let text = "edited in round \(round)\n"
    try (tree.top / "both.txt").replace(text)
    try expectEventually(text, in: "both.txt")
  }

  func expectText(_ text: String, in path: ByteString) throws {
    #expect(try (view / path).readText() == text, "\(path)")
  }

  func expectEventually(_ text: String, in path: ByteString) throws {
    var seen = ""
    let isThere = eventually(within: 20) {
      do { seen = try (view / path).readText() } catch { seen = "\(error)" }
      return seen == text
    }
    #expect(isThere, "\(path): \(seen)")
  }

  /// Checks what `bundlefs status` says, which a mount for one program says inside only.
  func expectStatus(_ isRight: (StatusReport) -> Bool) throws {
    guard let mount else { return }
    let report = try mount.report()
    #expect(isRight(report), "\(report)")
  }

  func expectWrites(into upper: ByteString) throws {
    let new = ByteString("new\(round).txt")
    if isReadOnly {
      return try expectErrno(.readOnlyFileSystem) { try (view / new).write("new\n") }
    }
    try (view / new).write("new\n")
    #expect(try (upper / new).readText() == "new\n")
    try expectText("new\n", in: new)
    let text = "saved in round \(round)\n"
    try (view / "plain.txt").write(text)
    try expectText(text, in: "plain.txt")
    #expect(try (upper / "plain.txt").readText() == text)
    #expect(try (tree.main / "plain.txt").readText() == "main's plain\n")
    let removed = OptionTree.removed(in: round)
    try (view / removed).remove()
    #expect(!(view / removed).exists && (tree.main / removed).exists)
    #expect((upper / (".wh." + removed)).exists == has("whiteouts=markers"))
  }
}
