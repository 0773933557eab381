import Posix
import Routing
import TestSupport
import Testing

/// `bundlefs layers MOUNTPOINT save`, `load` and `profiles`, and the option `profile=`.
extension MountTests {
  @Suite struct ProfileCommandTests {
    private let fixture: LayersFixture
    private let configuration: ByteString

    init() throws {
      fixture = try LayersFixture()
      configuration = fixture.folder / "configuration"
    }

    private func run(_ words: [ByteString]) throws -> Outcome {
      try Command(
        [try Binary.underTest()] + words, environment: ["XDG_CONFIG_HOME": configuration.text],
        directory: fixture.folder.path
      ).run(timeout: 30)
    }

    private func layers(_ words: ByteString..., location: SourceLocation = #_sourceLocation) throws -> Outcome
    {
      let outcome = try run(["layers", fixture.point] + words)
      #expect(outcome.status == 0, "\(words): \(outcome.errorText)", sourceLocation: location)
      return outcome
    }

    private func file(_ name: ByteString) -> ByteString { configuration / "bundlefs/profiles" / name }

    @Test("a stack is saved, edited, loaded in one step and mounted", .timeLimit(.minutes(2)))
    func saved() throws {
      try withMount(fixture.setup("a", "c.zip", options: ["case=insensitive", "hide=*.bak"])) { mount in
        #expect(try layers("save", "two").output.isEmpty)
        let lines = try file("two").readText().split(separator: "\n").map { String($0) }
        let layerLines = (["a", "c.zip"] as [ByteString]).map { "substitution=\(fixture.layer($0))" }
        #expect(lines.dropFirst() == ArraySlice(layerLines + ["case=insensitive", "hide=*.bak"]), "\(lines)")
        #expect(lines[0].hasPrefix("# ") && lines[0].contains(mount.point.text))
        #expect(try file("two").status().permissions == 0o600)

        try fixture.change("set", "mods/b")
        _ = try layers("save", "one")
        #expect(try layers("profiles").outputText == "* one  1 layer\n  two  2 layers\n")
        let loaded = try layers("load", "two")
        #expect(loaded.output.isEmpty && loaded.errors.isEmpty, "\(loaded.errorText)")
        try fixture.expect("a", "c.zip")
        try file("two").write("substitution=\(fixture.layer("b")):\(fixture.layer("a"))\nhide=*.tmp\n")
        let note = try layers("load", "two").errorText
        #expect(
          note.contains("case (sensitive instead of insensitive), hide (*.tmp instead of *.bak)"), "\(note)")
        try fixture.expect("b", "a")
      }
      var setup = fixture.setup(options: ["profile=two"])
      setup.environment["XDG_CONFIG_HOME"] = configuration.text
      try withMount(setup) { mount in
        try fixture.expect("b", "a")
        let report = try mount.report()
        #expect(report.options["hide"] == "*.tmp" && report.options["case"] == "sensitive")
        let upgraded = try run(["upgrade", mount.point])
        #expect(upgraded.status == 0, "\(upgraded.errorText)")
        _ = try layers("save", "again")
        #expect(try file("again").readText().hasSuffix("\nhide=*.tmp\n"))
      }
    }

    @Test("what is no file of a profile's size is reported and read no further", .timeLimit(.minutes(1)))
    func strangeFiles() throws {
      try withMount(fixture.setup("a")) { _ in
        _ = try layers("save", "good")
        try file("pipe").makeNode(mode: FileKind.fifo.rawValue | 0o600)
        try file("folder").makeDirectory()
        try file("large").write("#")
        try file("large").setSize(1 << 40)
        let link = fixture.folder / "elsewhere"
        try file("good").rename(to: link)
        try file("good").makeLink(to: link)
        let lines = try layers("profiles").outputText.split(separator: "\n").map { String($0) }
        #expect(lines.count == 4 && lines[1] == "* good    1 layer", "\(lines)")
        for (line, reason) in [(0, "directory"), (2, "too large"), (3, "Invalid argument")] {
          #expect(lines[line].lowercased().contains(reason.lowercased()), "\(lines[line])")
        }
        let loaded = try run(["layers", fixture.point, "load", "pipe"])
        #expect(loaded.status == 1 && loaded.errorText.contains("pipe"), "\(loaded.errorText)")
      }
    }

    @Test("names of any bytes and all options come back", .timeLimit(.minutes(2)))
    func odd() throws {
      let odd = fixture.layer(ByteString(Array("a:b, c\\&\n#%41 ".utf8) + [0xFF]))
      try odd.makeDirectory()
      try LayersFixture.fill(odd)
      try (fixture.folder / "my, routes").write("route Known l:(known)Word\n")
      let options: [ByteString] = [
        "languages=fr:en", "cache=2", "control=.ways\\,", "xattr=off", "watchdog=off", "fsname=other",
        "nosuid",
        "routes=" + MountSetup.escaped(fixture.folder / "my, routes"),
      ]
      var setup = fixture.setup(options: options)
      setup.substitutions = [odd]
      try withMount(setup) { _ in _ = try layers("save", "odd") }
      let text = try file("odd").readText()
      #expect(!text.contains("fsname") && !text.contains("nosuid"), "\(text)")
      var second = fixture.setup(options: ["profile=odd"])
      second.environment["XDG_CONFIG_HOME"] = configuration.text
      try withMount(second) { mount in
        #expect(try mount.point.names().contains(odd.lastComponent + ".txt"))
        #expect(try (mount.point / ".ways,").readText().hasPrefix("route Known"))
        _ = try layers("save", "odd again")
      }
      let lines = { (name: ByteString) in try file(name).read().split(separator: 10).dropFirst() }
      #expect(try Array(lines("odd")) == Array(lines("odd again")))
    }

    @Test("the layer that takes changes stays, and its absence is noted", .timeLimit(.minutes(1)))
    func writable() throws {
      try withMount(fixture.setup("a", "b", options: ["writable"])) { mount in
        _ = try layers("save", "work")
        #expect(
          try file("work").readText().contains(
            "writable=\(fixture.layer("a"))\nsubstitution=\(fixture.layer("b"))\n"))
        try fixture.change("set", "")
        let loaded = try layers("load", "work")
        #expect(loaded.errors.isEmpty, "\(loaded.errorText)")
        try fixture.expect("a", "b")
      }
      try withMount(fixture.setup("b")) { _ in
        let note = try layers("load", "work").errorText
        #expect(note.contains("writable (\(fixture.layer("a")) instead of none)"), "\(note)")
        try fixture.expect("a", "b")
      }
    }

    @Test("what is wrong changes nothing, and is named", .timeLimit(.minutes(1)))
    func refused() throws {
      try withMount(fixture.setup("a")) { mount in
        let refused = { (words: [ByteString], naming: String, status: CInt) in
          let outcome = try run(["layers", mount.point] + words)
          let isNamed = outcome.status == status && outcome.errorText.contains(naming)
          #expect(isNamed, "\(words): \(outcome.status) \(outcome.errorText)")
          try fixture.expect("a")
        }
        for name in ["../a", "a/b", "", "..", ".hidden"] as [ByteString] {
          for verb in ["save", "load"] as [ByteString] { try refused([verb, name], "name of a profile", 2) }
        }
        try refused(["load"], "one NAME", 2)
        try refused(["profiles", "x"], "no further argument", 2)
        try refused(["load", "none"], file("none").text, 1)
        _ = try layers("save", "mine")
        #expect(try (configuration / "bundlefs").names() == ["profiles"])
        try file("bad").write("case=sensitive\nnonsense\n")
        try refused(["load", "bad"], "\(file("bad")):2: ", 1)
        try file("gone").write("substitution=\(fixture.layer("a")):\(fixture.layer("gone"))\n")
        try refused(["load", "gone"], fixture.layer("gone").text, 1)
        let list = try #require(JSONValue(layers("profiles", "--json").output))
        guard case .array(let rows) = list else { throw TestFailure("no array") }
        #expect(rows.compactMap { $0["name"]?.string } == ["bad", "gone", "mine"])
        #expect(rows[0]["error"]?.string?.contains("bad:2: ") == true && rows[2]["present"] == .boolean(true))
        let mounted = try run([fixture.main, fixture.layer("b"), "-o", "profile=bad"])
        #expect(mounted.status == 1 && mounted.errorText.contains("bad:2: "), "\(mounted.errorText)")
        #expect(try run([fixture.main, fixture.layer("b"), "-o", "profile=../bad"]).status == 2)
      }
    }
  }
}
