import TestSupport
import Testing

@testable import bundlefs

/// The text of profiles, and what their names may be.
@Suite struct ProfileTextTests {
  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  private func read(_ text: String) -> [String] {
    var (reader, options) = (ProfileText(bytes(text)), [String]())
    while let (line, option) = reader.next() { options.append("\(line) \(option.shown)") }
    return options
  }

  @Test("options are read by line, without comments, blank lines and indents")
  func lines() {
    #expect(
      read("# a\\\n  case=insensitive\r\n\n\t# b\nhide=*.bak")
        == ["2 case=insensitive", "5 hide=*.bak"])
    #expect(read("") == [] && read("\n \n#") == [])
  }

  @Test("commas need no backslash, and a backslash keeps a line end")
  func escapes() {
    #expect(read("substitution=/a, b:/c\\, d") == [#"1 substitution=/a\, b:/c\, d"#])
    #expect(read("substitution=/a\\\nb\nxattr=off") == ["1 substitution=/a\nb", "3 xattr=off"])
    #expect(read("substitution=/a\\\\\nxattr=off") == [#"1 substitution=/a\\"#, "2 xattr=off"])
    #expect(read("substitution=/a\\\r\n") == ["1 substitution=/a\r"])
  }

  @Test("any path reads back as it is written")
  func roundTrip() throws {
    let special: [UInt8] = bytes("a, :\\\n\r#= \u{e9}") + [0xFF, 0x80]
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      let path = (0..<Int.random(in: 1...8, using: &generator)).compactMap { _ in special.randomElement() }
      let option = bytes("substitution=") + MountOption.escape(bytes("/") + path)
      let text = try #require(ProfileText.text(of: [option, bytes("xattr=off")]))
      var reader = ProfileText(ProfileText.comment("from \(path.shown)") + text)
      #expect(reader.next()?.option == option && reader.next()?.option == bytes("xattr=off"), "\(path)")
      #expect(reader.next() == nil)
      #expect(try MountOption(option).directories() == [bytes("/") + path])
    }
    // A pattern's own backslash before a line end.
    #expect(ProfileText.text(of: [bytes("hide=a\\\nb")]) == nil)
  }

  @Test(
    "a name leads to a file in the folder, and to no other",
    arguments: [
      "", ".", "..", "a/b", "/a", "../a", ".a", "a~", "a\nb", "a\0b", "\u{1b}",
      String(repeating: "a", count: 201),
    ])
  func names(name: String) throws {
    #expect(throws: Failure.self) { try ProfileName(bytes(name)) }
    #expect(throws: Failure.self) { try ProfileName([0xFF]) }
    #expect(try ProfileName(bytes("Nacht – 2, a:b")).shown == "Nacht – 2, a:b")
  }

  @Test("the folder is XDG_CONFIG_HOME's, or that of HOME")
  func folder() throws {
    func path(_ variables: [String: String]) throws -> String {
      try ProfileFolder { variables[$0].map(bytes) }.path.shown
    }
    #expect(try path(["XDG_CONFIG_HOME": "/c", "HOME": "/h"]) == "/c/bundlefs/profiles")
    #expect(try path(["XDG_CONFIG_HOME": "c", "HOME": "/h"]) == "/h/.config/bundlefs/profiles")
    #expect(try path(["XDG_CONFIG_HOME": "", "HOME": "/h"]) == "/h/.config/bundlefs/profiles")
    #expect(throws: Failure.self) { try path([:]) }
  }

  @Test(
    "what is wrong in a file is named with its line",
    arguments: [
      ("\ncase=perhaps\n", ":2: ", "case=perhaps"), ("hide=a\n\nsubstitution=mods/a\n", ":3: ", "absolute"),
      ("profile=other", ":1: ", "'profile'"), ("ro,remount", ":1: ", "ro"), ("remount", ":1: ", "'remount'"),
      ("nosuch=1", ":1: ", "nosuch"), ("routes=r", ":1: ", "absolute"), ("hide=\0", ":1: ", "NUL"),
    ])
  func faults(text: String, line: String, naming: String) throws {
    let folder = try TemporaryFolder()
    let profiles = try folder.folder("bundlefs/profiles")
    try (profiles / "bad").write(text)
    let failure = try #require(throws: Failure.self) {
      _ = try Profile(ProfileName(bytes("bad")), in: ProfileFolder { $0 == "HOME" ? nil : folder.path.bytes })
    }
    let isNamed = failure.message.contains(profiles.text + "/bad" + line) && failure.message.contains(naming)
    #expect(isNamed, "\(failure.message)")
  }
}
