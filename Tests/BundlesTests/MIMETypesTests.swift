import Layers
import Posix
import TestSupport
import Testing

@testable import Bundles

@Suite struct MIMETypesTests {
  /// Types from databases with these contents.
  private static func types(globs: [String] = [], types: [String] = []) throws -> MIMETypes {
    let folder = try TemporaryFolder()
    func files(_ texts: [String], _ name: String) throws -> [[UInt8]] {
      try texts.enumerated().map { index, text in
        let path = folder / ByteString("\(name)\(index)")
        try path.write(text)
        return path.bytes
      }
    }
    let paths = MIMETypes.Paths(globs: try files(globs, "globs"), types: try files(types, "types"))
    let read = MIMETypes(paths: paths)
    // Loads the databases before the folder is removed.
    _ = read.type(forName: [])
    return read
  }

  private static let globs = """
    # A comment.
    50:text/x-csrc:*.c
    50:text/x-c++src:*.C:cs
    50:application/gzip:*.gz
    50:application/x-compressed-tar:*.tar.gz
    80:text/html:*.html
    50:application/xhtml+xml:*.x.html
    50:text/x-makefile:makefile
    10:text/x-makefile:makefile.*
    50:text/x-core:core:cs
    60:application/x-sharedlib:*.so.[0-9]*
    50:application/x-troff-man:*.[1-9]
    50:application/x-trash:*~
    50:text/x-rcs:*,v
    10:text/x-readme:readme*
    50:video/mpeg:[0-9][0-9][0-9].vdr
    50:text/x-first:*.tie
    50:text/x-second:*.tie
    50:text/x-flags:*.flag:cs,other:more
    x:text/x-damaged:*.damaged
    50:nothing:*.nothing
    50:text/plain
    50:text/x-open:*.[open
    """

  @Test(
    "globs2 patterns are ranked by literal, weight, length and case",
    arguments: [
      ("a.c", "text/x-csrc"), ("a.C", "text/x-c++src"), ("a.b.c", "text/x-csrc"), (".c", "text/x-csrc"),
      ("a.gz", "application/gzip"), ("a.tar.gz", "application/x-compressed-tar"),
      ("a.TAR.GZ", "application/x-compressed-tar"), ("a.Tar.gZ", "application/x-compressed-tar"),
      ("a.x.html", "text/html"), ("a.HTML", "text/html"), ("makefile", "text/x-makefile"),
      ("MAKEFILE", "text/x-makefile"), ("Makefile.in", "text/x-makefile"), ("makefile.c", "text/x-csrc"),
      ("core", "text/x-core"), ("CORE", nil), ("libx.so.1.2", "application/x-sharedlib"),
      ("LIBX.SO.1", "application/x-sharedlib"), ("libx.so.a", nil), ("ls.1", "application/x-troff-man"),
      ("ls.0", nil), ("a~", "application/x-trash"), ("a.c~", "application/x-trash"), ("a.c,v", "text/x-rcs"),
      ("README", "text/x-readme"), ("readme.c", "text/x-csrc"), ("001.vdr", "video/mpeg"), ("01.vdr", nil),
      ("0001.vdr", nil), ("a.tie", "text/x-first"), ("a.flag", "text/x-flags"), ("a.FLAG", nil),
      ("a.damaged", nil), ("a.nothing", nil), ("c", nil), ("", nil), ("gz", nil), (".", nil), ("a.", nil),
    ])
  func globs(name: String, expected: String?) throws {
    let types = try Self.types(globs: [Self.globs])
    #expect(types.type(forName: Array(name.utf8)) == expected)
  }

  @Test("an earlier globs2 has priority and may discard a type")
  func several() throws {
    let types = try Self.types(globs: [
      "50:text/x-mine:*.a\n50:text/x-csrc:__NOGLOBS__\n50:text/x-csrc:*.mine\n",
      "50:text/x-yours:*.a\n50:text/x-csrc:*.c\n90:text/x-heavy:*.b\n",
    ])
    #expect(types.type(forName: Array("x.a".utf8)) == "text/x-mine")
    #expect(types.type(forName: Array("x.c".utf8)) == nil)
    #expect(types.type(forName: Array("x.mine".utf8)) == "text/x-csrc")
    #expect(types.type(forName: Array("x.b".utf8)) == "text/x-heavy")
  }

  @Test("mime.types is used after all globs")
  func extensions() throws {
    let types = try Self.types(
      globs: ["50:text/x-glob:*.a\n"],
      types: ["text/x-type a b # c\n# text/x-no d\n\ttext/x-tabs\te\tTAR.x  tar.y\nbroken f\ntext/none\n"])
    for (name, expected) in [
      ("x.a", "text/x-glob"), ("x.b", "text/x-type"), ("x.B", "text/x-type"), ("x.c", nil), ("x.d", nil),
      ("x.e", "text/x-tabs"), ("x.TAR.x", "text/x-tabs"), ("x.tar.x", nil), ("x.TAR.Y", "text/x-tabs"),
      ("x.f", nil), ("b", nil), (".b", nil), ("x.b.", nil), ("", nil),
    ] {
      #expect(types.type(forName: Array(name.utf8)) == expected, "\(name)")
    }
  }

  @Test("without databases, the content determines the type")
  func content() throws {
    let types = MIMETypes(
      paths: .init(globs: [Array("/nonexistent".utf8), [0]], types: [Array("/etc".utf8)]))
    func type(_ content: [UInt8]) -> String { types.type(for: Array("a.png".utf8)) { content } }
    #expect(type([]) == "text/plain")
    #expect(type(Array("text\twith\r\nlines\u{1B}[0m é\u{C}".utf8)) == "text/plain")
    #expect(type([0x61, 0]) == "application/octet-stream")
    #expect(type([0x7F]) == "application/octet-stream")
    #expect(type(Array(repeating: 0x61, count: 128) + [0]) == "text/plain")
    #expect(type(Array(repeating: 0x61, count: 127) + [0]) == "application/octet-stream")
    #expect(type([0xFF, 0xFE, 0x61, 0]) == "text/plain")
    #expect(type([0xE9, 0x74, 0xE9]) == "text/plain")
  }

  @Test("a valid attribute has priority; the content is read only if needed")
  func attribute() throws {
    let types = try Self.types(globs: [Self.globs])
    struct Read: Error {}
    func type(_ name: String, _ attribute: String?) throws -> String {
      try types.type(for: Array(name.utf8), attribute: attribute.map { Array($0.utf8) }) { throw Read() }
    }
    #expect(try type("a.c", "image/x-own") == "image/x-own")
    #expect(try type("a", "text/html; charset=utf-8") == "text/html")
    #expect(try type("a", " text/html\n\0") == "text/html")
    for damaged in ["", "text", "text/", "/html", "text/ht ml", "a/b/c", "tëxt/html", "text/\"html\"", "\0"] {
      #expect(try type("a.c", damaged) == "text/x-csrc")
      #expect(throws: Read.self) { try type("a", damaged) }
    }
    #expect(try type("a.c", String(repeating: "a", count: 300) + "/b") == "text/x-csrc")
  }

  @Test("entries of other kinds")
  func kinds() {
    #expect(MIMETypes.type(ofKind: .directory) == "inode/directory")
    #expect(MIMETypes.type(ofKind: .regular) == nil)
  }

  @Test(
    "patterns",
    arguments: [
      ("*", "", true), ("*", "a", true), ("**", "a", true), ("a*b*c", "axbxc", true),
      ("a*b*c", "axbxcx", false),
      ("?", "", false), ("?", "a", true), ("[abc]", "b", true), ("[!abc]", "b", false), ("[^abc]", "d", true),
      ("[a-c]x", "cx", true), ("[c-a]", "b", true), ("[]]", "]", true), ("[!]]", "]", false),
      ("[a-]", "-", true),
      ("\\*", "*", true), ("\\*", "a", false), ("*a", "aaa", true), ("*aab", "aaab", true), ("", "", true),
      ("", "a", false), ("*[0-9]*", "a1b", true),
    ])
  func patterns(pattern: String, name: String, expected: Bool) throws {
    #expect(try #require(Glob(Array(pattern.utf8))).matches(Array(name.utf8)) == expected)
  }

  @Test("malformed patterns", arguments: ["[", "[a", "[]", "[!]", "\\", "a[b-"])
  func malformedPatterns(pattern: String) { #expect(Glob(Array(pattern.utf8)) == nil) }

  @Test("random databases, names and contents never trap", arguments: [UInt64](1...4))
  func random(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let alphabet = Array("ab.*?[]!-\\:/~#5 \n\tABcs,\u{0}".utf8) + [0xFF]
    func bytes(_ count: Int) -> [UInt8] {
      (0..<Int.random(in: 0...count, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? 0 }
    }
    for _ in 0..<20 {
      var lines: [UInt8] = []
      for _ in 0..<30 { lines += Array("50:a/b:".utf8) + bytes(8) + [0x0A] + bytes(20) }
      let (globs, extensions) = (GlobTable(files: [lines, bytes(200)]), ExtensionTable(files: [lines]))
      for _ in 0..<100 {
        let name = bytes(12)
        _ = globs.type(for: name)
        _ = extensions.type(for: name)
        _ = MIMETypes.type(inAttribute: name)
        _ = TextEncoding.name(ofContent: name, isWhole: Bool.random(using: &random), type: "text/plain")
      }
    }
  }
}
