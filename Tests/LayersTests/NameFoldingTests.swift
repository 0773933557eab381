import Layers
import TestSupport
import Testing

/// Case folding against Python's, which has its own tables.
@Suite struct NameFoldingTests {
  @Test("every letter folds as Python folds it", .timeLimit(.minutes(1)))
  func letters() throws {
    // The letters that Python's version of Unicode knows, each with what it folds to.
    let script = """
      import sys, unicodedata as u
      for code in range(sys.maxunicode + 1):
        c = chr(code)
        if u.category(c) in ("Cs", "Cn"): continue
        folded = u.normalize("NFD", u.normalize("NFD", c).casefold())
        sys.stdout.buffer.write(("%x %s\\n" % (code, folded.encode().hex())).encode())
      """
    let lines = try Command("python3", "-c", script).check().outputText.split(separator: "\n")
    #expect(lines.count > 130_000)
    for line in lines {
      let fields = line.split(separator: " ")
      let scalar = try #require(UInt32(fields[0], radix: 16).flatMap(Unicode.Scalar.init))
      if scalar.value == 0 { continue }
      let key = NameFolding.key(of: Array(String(scalar).utf8))
      let hex = key.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      if hex != (fields.count > 1 ? fields[1] : "") { Issue.record("U+\(fields[0]) folds to \(hex)") }
    }
  }

  @Test("random names of few letters are equal where Python says so", arguments: 0..<4)
  func words(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let letters = Array(
      "aAbB\u{e9}\u{c9}\u{301}\u{345}\u{308}\u{3b1}\u{391}\u{3c3}\u{3c2}\u{3a3}\u{df}\u{1e9e}sSiI\u{130}\u{131}\u{307}\u{fb01}\u{1fb4}\u{212a}k"
        .unicodeScalars)
    let words = (0..<500).map { _ in
      String(String.UnicodeScalarView((0..<random.number(1...4)).map { _ in random.pick(letters) }))
    }
    let script = """
      import sys, unicodedata as u
      for line in sys.stdin.buffer.read().decode().split("\\n"):
        word = u.normalize("NFD", line)
        sys.stdout.buffer.write((u.normalize("NFD", word.casefold()).encode().hex() + "\\n").encode())
      """
    let folder = try TemporaryFolder()
    try (folder.path / "words").write(words.joined(separator: "\n"))
    try (folder.path / "script").write(script)
    let output = try Command.shell("python3 \"$1\" < \"$2\"", folder.path / "script", folder.path / "words")
      .check()
    let folded = output.outputText.split(separator: "\n").map(String.init)
    try #require(folded.count == words.count)
    for (word, hex) in zip(words, folded) {
      let key = NameFolding.key(of: Array(word.utf8))
      #expect(
        key.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == hex, "\(word.utf8.map { $0 })")
    }
  }

  @Test("names that are not UTF-8 are their own keys")
  func bytes() {
    for name in [[0x41, 0xFF], [0x80], [0xC3], [0x41, 0xED, 0xA0, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80]]
      as [[UInt8]]
    {
      #expect(NameFolding.key(of: name) == name)
    }
    #expect(!NameFolding.areEqual([0x41, 0xFF], [0x61, 0xFF]))
    #expect(NameFolding.areEqual(Array("README".utf8), Array("ReadMe".utf8)))
    #expect(NameFolding.key(of: []) == [])
  }

  @Test("the longest names")
  func longest() {
    for letter in ["\u{1f82}", "\u{fdfa}", "\u{390}", "A", "\u{d55c}"] {
      let name = String(repeating: letter, count: 255 / letter.utf8.count)
      let other = name.lowercased()
      #expect(NameFolding.areEqual(Array(name.utf8), Array(other.utf8)), "\(letter)")
    }
  }
}
