import Glibc
import Posix
import TestSupport
import Testing

/// `-o strings=merge`.
extension MountTests {
  @Suite struct MergedTableTests {
    private static let name: ByteString = "fr.lproj/Main.strings"

    private func withTables(_ body: (Mount, Fixture) throws -> Void) throws {
      let fixture = try Fixture()
      for layer in [fixture.main, fixture.substitution] { try (layer / "fr.lproj").makeDirectory() }
      try (fixture.main / Self.name).write(
        "\"greeting\" = \"Bonjour\";\n/* a word */\n\"bye\" = \"Au revoir\";\n")
      try (fixture.substitution / Self.name).write("\"greeting\" = \"Salut\";\n")
      try withMount(fixture.setup("strings=merge")) { try body($0, fixture) }
    }

    @Test("a table has the keys of all layers, the upper one's values, and fitting attributes")
    func attributes() throws {
      try withTables { mount, fixture in
        let table = mount.point / Self.name
        let text = try table.readText()
        #expect(text.contains("\"greeting\" = \"Salut\";") && text.contains("\"bye\" = \"Au revoir\";"))
        #expect(text.contains("/* a word */") && !text.contains("Bonjour"))
        let status = try table.status()
        #expect(status.size == Int64(text.utf8.count) && status.links == 1)
        let times = try [fixture.main, fixture.substitution].map { try ($0 / Self.name).status().modified }
        #expect(status.modified == times.max())
        let layers = "\(fixture.substitution):\(fixture.main)"
        #expect(try table.attribute("user.bundlefs.layer") == Array(layers.utf8))
        #expect(try table.attribute("user.bundlefs.path") == (fixture.substitution / Self.name).bytes)
        try expectErrno(.readOnlyFileSystem) { try table.write("x") }
      }
    }

    @Test(
      "an edit in any layer shows at once, and programs that watch the mount receive it",
      .timeLimit(.minutes(1)))
    func edits() throws {
      try withTables { mount, fixture in
        let table = mount.point / Self.name
        let watcher = try MountWatcher(mount.point, ["fr.lproj"])
        _ = try table.readText()
        for (layer, value) in [
          (fixture.main, "Adieu"), (fixture.substitution, "Ciao"), (fixture.main, "Fin"),
        ] {
          let key = layer == fixture.main ? "bye" : "greeting"
          try (layer / Self.name).write("\"\(key)\" = \"\(value)\";\n")
          try mount.barrier()
          #expect(try table.readText().contains("\"\(key)\" = \"\(value)\";"))
          #expect(try table.status().size == Int64(table.readText().utf8.count))
          #expect(try watcher.receives(.modified, "Main.strings", in: "fr.lproj"), "\(layer)")
          try watcher.discardEvents()
        }
        try (fixture.substitution / Self.name).remove()
        try mount.barrier()
        #expect(try table.readText() == "\"bye\" = \"Fin\";\n")
        #expect(try table.attribute("user.bundlefs.layer") == fixture.main.bytes)
      }
    }

    @Test("a program that has a table open continues with it", .timeLimit(.minutes(1)))
    func openTables() throws {
      try withTables { mount, fixture in
        let table = mount.point / Self.name
        let before = try table.read()
        try table.withOpen(O_RDONLY) { file in
          var bytes = [UInt8](repeating: 0, count: 4)
          #expect(pread(file, &bytes, 4, 0) == 4)
          try (fixture.main / Self.name).write("\"new\" = \"key\";\n")
          try mount.barrier()
          if mount.worker != mount.process.pid { kill(mount.worker, SIGKILL) }
          var rest = [UInt8](repeating: 0, count: 4096)
          let count = pread(file, &rest, rest.count, 0)
          #expect(count == before.count && Array(rest.prefix(max(count, 0))) == before)
          #expect(try table.readText().contains("\"new\""))
        }
      }
    }

    @Test("status names the table that could not be parsed, with line and column", .timeLimit(.minutes(1)))
    func malformed() throws {
      try withTables { mount, fixture in
        try (fixture.main / Self.name).write("\"a\" = \"b\";\n\"c\" = ;\n")
        try mount.barrier()
        #expect(try (mount.point / Self.name).readText() == "\"greeting\" = \"Salut\";\n")
        let text = try mount.command("status").outputText
        #expect(text.contains("\(fixture.main / Self.name):2:"), "\(text)")
        try (fixture.main / Self.name).write("\"c\" = \"d\";\n")
        try mount.barrier()
        #expect(try (mount.point / Self.name).readText().contains("\"c\" = \"d\";"))
        #expect(try !mount.command("status").outputText.contains("not merged"))
      }
    }

    @Test("a user's own table above root's does not show him root's keys", .timeLimit(.minutes(1)))
    func secretTable() throws {
      let fixture = try Fixture()
      let names = ["Main.strings", "Open.strings"] as [ByteString]
      for name in names {
        try (fixture.main / name).write("\"key\" = \"secret\";\n")
        try (fixture.main / name).setMode(name == "Main.strings" ? 0o600 : 0o644)
        try (fixture.substitution / name).write("\"own\" = \"x\";\n")
        try (fixture.substitution / name).setOwner(1000, group: 1000)
      }
      try withMount(fixture.setup("strings=merge", "allow_other")) { mount in
        for (name, isShown) in zip(names, [false, true]) {
          let command = Command.shell("cat \"$1\"", mount.point / name)
          for text in try [command, command.asUser(1000)].map({ try $0.check().outputText }) {
            #expect(text.contains("own") && text.contains("secret") == isShown, "\(name): \(text)")
          }
        }
        let status = try mount.command("status").outputText
        let reason = "\(fixture.main / names[0]):not readable by all who may read the topmost table"
        #expect(status.contains(reason) && !status.contains("Open.strings"), "\(status)")
        try (fixture.main / names[0]).setMode(0o644)
        try mount.barrier()
        #expect(try (mount.point / names[0]).readText().contains("secret"))
      }
    }

    @Test("a listing has the merged table's attributes", .timeLimit(.minutes(1)))
    func listing() throws {
      try withTables { mount, fixture in
        let listed = try Command("ls", "-il", (mount.point / "fr.lproj").text).check().outputText
        let status = try (mount.point / Self.name).status()
        #expect(listed.contains(" \(status.size) ") && listed.contains("\(status.inode) "), "\(listed)")
        #expect(try (mount.point / "fr.lproj").names() == ["Main.strings"])
      }
    }

    @Test("diff, tree and layers name every layer that a table comes from", .timeLimit(.minutes(1)))
    func comparison() throws {
      let folder = try TemporaryFolder()
      let layers = try ["A", "B", "C", "main"].map { try folder.folder($0) }
      try (layers[0] / "T.strings").write("\"a\" = \"1\";\n")
      try (layers[1] / "T.strings").write("\"b\" = \"2\";\n")
      try (layers[2] / "T.strings").write("\"c\" = ;\n")
      try (layers[3] / "T.strings").write("\"d\" = \"4\";\n")
      var setup = MountSetup(
        main: layers[3], point: try folder.folder("mount"), substitutions: Array(layers[..<3]))
      setup.options = ["strings=merge"]
      try withMount(setup) { mount in
        #expect(
          try mount.command("diff").outputText == """
            \(layers[0])
              merges     T.strings  (with B, MAIN)
                adds       "a"
            \(layers[1])
              merges     T.strings  (with A, MAIN)
                adds       "b"
            \(layers[2])  contributes nothing
            0 overridden, 0 added, 0 hidden, 0 unchanged, 1 merged

            """)
        let tree = try mount.command("tree").outputText
        #expect(tree.contains("T.strings  (\(layers[0]), \(layers[1]), \(layers[3]), merged)"), "\(tree)")
        let json = try mount.command("diff", "--json").outputText
        #expect(json.contains("\"verdict\":\"merged\""))
        #expect(json.contains("{\"key\":\"b\",\"verdict\":\"added\",\"layer\":\"\(layers[1])\"}"), "\(json)")
        #expect(
          try mount.command("layers", "--count").outputText == """
            1     directory  1 name   \(layers[0])
            2     directory  1 name   \(layers[1])
            3     directory  no name  \(layers[2])
            MAIN  directory  1 name   \(layers[3])

            """)
      }
    }

    @Test("another value is refused", .timeLimit(.minutes(1)))
    func refusals() throws {
      let fixture = try Fixture()
      for options in ["strings=both", "strings"] as [ByteString] {
        let error = try #require(
          #expect(throws: TestFailure.self) { try Mount(fixture.setup(options)) })
        #expect("\(error)".contains("strings"), "\(options): \(error)")
      }
    }
  }
}
