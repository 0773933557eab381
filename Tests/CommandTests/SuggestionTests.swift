import Testing

@testable import bundlefs

/// Messages about what was misspelt.
@Suite struct SuggestionTests {
  @Test(
    "the edit distance counts insertions, removals, replacements and exchanges of neighbours",
    arguments: [
      ("", "", 0), ("", "abc", 3), ("status", "status", 0), ("statsu", "status", 1), ("satus", "status", 1),
      ("stattus", "status", 1), ("stetus", "status", 1), ("kitten", "sitting", 3), ("ab", "ba", 1),
      ("ca", "abc", 3),
    ])
  func distance(first: String, second: String, expected: Int) {
    #expect(Suggestion.editDistance(Array(first.utf8), Array(second.utf8)) == expected)
    #expect(Suggestion.editDistance(Array(second.utf8), Array(first.utf8)) == expected)
  }

  @Test("a word of a megabyte is compared without a table of that size", .timeLimit(.minutes(1)))
  func longWord() {
    let word = String(repeating: "x", count: 1 << 20)
    #expect(Suggestion.nearest(to: word, among: Help.commands) == nil)
  }

  private func failure(_ words: String..., exists: Bool = false) -> Failure? {
    UnknownCommand.failure(words.map { Array($0.utf8) }) { _ in exists }
  }

  @Test(
    "a misspelt command is answered with the right one",
    arguments: [
      ("statsu", "status"), ("umount", "unmount"), ("helth", "health"), ("lst", "list"),
      ("overide", "override"),
      ("unmonut", "unmount"), ("help", "--help"), ("resource", "resources"), ("ls", "list"),
    ])
  func commands(word: String, meant: String) throws {
    let failure = try #require(self.failure("bundlefs", word, "mnt"))
    #expect(
      failure.status == 2 && failure.message.contains("did you mean 'bundlefs \(meant)'?"), "\(failure)")
  }

  @Test("what may be a MAIN is not taken for a misspelt command")
  func directories() {
    #expect(failure("bundlefs") == nil && failure("bundlefs", "App.app", "mnt") == nil)
    #expect(failure("bundlefs", "./statsu", "mnt") == nil)
    #expect(failure("bundlefs", "statsu", "mnt", exists: true) == nil)
    #expect(failure("/sbin/mount.bundlefs", "statsu", "mnt") == nil)
    #expect(failure("bundlefs", "", "mnt") == nil && failure("bundlefs", "-x") == nil)
  }

  @Test("'mount' shows how to mount, with the arguments that were given")
  func mount() throws {
    let plain = try #require(failure("bundlefs", "mount"))
    #expect(plain.message.contains("bundlefs MAIN MOUNTPOINT"))
    let given = try #require(failure("bundlefs", "mount", "App.app", "my mnt", "-o", #"substitution=a\,b'"#))
    #expect(given.message.contains(#"bundlefs App.app 'my mnt' -o 'substitution=a\,b'\'''"#), "\(given)")
  }

  // MARK: - Mount options

  private func message(_ options: String) throws -> String {
    var read = MountOptions()
    return try #require(throws: Failure.self) { try read.read(Array(options.utf8)) }.message
  }

  @Test(
    "a misspelt mount option is answered with the right one",
    arguments: [
      ("substituton=x", "substitution="), ("cach=none", "cache="), ("alow_other", "allow_other"),
      ("writeable", "writable="), ("list_route", "list_routes"), ("watchdgo=3", "watchdog="),
    ])
  func options(option: String, meant: String) throws {
    let message = try message("ro,\(option)")
    #expect(message.contains("'\(option)'; did you mean '\(meant)'?"), "\(message)")
  }

  @Test("an option that is like none is answered without a suggestion")
  func strangeOption() throws {
    #expect(try !message("frobnicate=1").contains("did you mean"))
  }

  @Test(
    "an option without a value says so",
    arguments: ["ro", "allow_other", "trust_upper", "nonempty", "nofail"])
  func flags(name: String) throws {
    for value in ["1", "", "on"] {
      #expect(try message("\(name)=\(value)").contains("'\(name)' takes no value"), "\(value)")
    }
  }

  @Test("all names that are suggested are known")
  func names() throws {
    for name in OptionNames.flags {
      var options = MountOptions()
      #expect(throws: Never.self, "\(name)") { try options.read(Array(name.utf8)) }
    }
    for name in OptionNames.valued.subtracting(OptionNames.flags) {
      #expect(try !message(name).contains("unknown"), "\(name)")
    }
    for command in Help.commands { #expect(Help.text.contains("bundlefs \(command) "), "\(command)") }
  }

  @Test("each command has a help of its own", arguments: Help.commands.sorted())
  func help(command: String) {
    let text = Help.text(for: command)
    #expect(text.hasPrefix("usage: bundlefs \(command) "))
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.contains("") && lines.count < 40 && lines.allSatisfy { $0.count <= 85 }, "\(text)")
    // Every flag of the usage is explained.
    let flags = text.prefix { $0 != "." }.matches(of: /--[a-z-]+/).map { String($0.output) }
    for flag in Set(flags) {
      #expect(text.matches(of: /--[a-z-]+/).count { String($0.output) == flag } > 1, "\(flag)")
    }
  }

  @Test(
    "a misspelt option of a command is answered with the right one",
    arguments: [
      ("status", "--jsn", "--json"), ("layers", "--cuont", "--count"), ("layers", "--topp", "--top"),
      ("diff", "--htm", "--html"), ("unmount", "--lasy", "--lazy"), ("listen", "--sinc", "--since"),
      ("run", "--att", "--at"), ("ui", "--no-opn", "--no-open"), ("metrics", "--al", "--all"),
      ("apply", "--dryrun", "--dry-run"), ("resources", "--typ", "--type"), ("route", "--befor", "--before"),
      ("revert", "--yess", "--yes"),
    ])
  func commandOptions(command: String, option: String, meant: String) {
    let failure = Failure.unknownOption(option, of: command)
    #expect(failure.status == 2)
    #expect(
      failure.message
        == "'\(command)' has no option '\(option)'; did you mean '\(meant)'? (see 'bundlefs \(command) --help')"
    )
  }

  @Test("an option with '=' says how its value is written, or that it has none")
  func valuesOfCommandOptions() {
    #expect(Failure.unknownOption("--json=1", of: "list").message.hasPrefix("'--json' takes no value"))
    #expect(Failure.unknownOption("--port=80", of: "ui").message.contains("a word of its own: '--port 80'"))
    #expect(
      Failure.unknownOption("--frobnicate=1", of: "ui").message.hasPrefix(
        "'ui' has no option '--frobnicate=1' ("))
    #expect(Help.options(of: "listen")["--since"] == true && Help.options(of: "list") == ["--json": false])
  }

  // MARK: - Paths with separators

  @Test(
    "a path that a comma or colon has torn is shown escaped",
    arguments: [
      ("substitution=/a,b", "/a,b", #"/a\,b"#), ("ro,substitution=/x:/a,b,c:/y,rw", "/a,b,c", #"/a\,b\,c"#),
      ("substitution=/a:b", "/a:b", #"/a\:b"#), (#"substitution=/x:/a:b\:c,ro"#, "/a:b:c", #"/a\:b\:c"#),
      ("writable=/a,b", "/a,b", #"/a\,b"#), ("routes=r,1", "r,1", #"r\,1"#),
    ])
  func separators(list: String, path: String, escaped: String) throws {
    let options = MountOption.split(Array(list.utf8), at: UInt8(ascii: ","))
    var search = UnescapedSeparator { $0.elementsEqual(path.utf8) }
    let hint = try #require(search.hint(inOptions: options))
    #expect(hint.contains("'\(path)'") && hint.contains("'\(escaped)'"), "\(hint)")
    search = UnescapedSeparator { _ in false }
    #expect(search.hint(inOptions: options) == nil)
  }

  @Test("what was escaped, and other options, are not taken for torn paths")
  func otherOptions() {
    let search = UnescapedSeparator { _ in true }
    for list in [#"substitution=/a"#, #"substitution=/a\,b"#, "hide=a:b", "fsname=x", "ro"] {
      let options = MountOption.split(Array(list.utf8), at: UInt8(ascii: ","))
      #expect(search.hint(inOptions: options) == nil, "\(list)")
    }
    #expect(search.hint(inLayers: [Array("a".utf8)]) == nil && search.hint(inLayers: []) == nil)
    #expect(search.hint(inLayers: [Array("a".utf8), Array("b".utf8)])?.contains(#"'a\:b'"#) == true)
  }
}
