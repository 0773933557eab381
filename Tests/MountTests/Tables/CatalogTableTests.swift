import Glibc
import Posix
import TestSupport
import Testing

/// String catalogs in a mount with `-o strings=merge`.
extension MountTests {
  @Suite struct CatalogTableTests {
    private static let name: ByteString = "app/fr.lproj/Main.strings"
    private static let catalog: ByteString = "app/Main.xcstrings"

    private static func text(_ key: String, _ value: String, language: String = "fr") -> String {
      """
      {"sourceLanguage": "en", "strings": {"\(key)": {"localizations": {"\(language)": {"stringUnit":
      {"state": "translated", "value": "\(value)"}}}}}, "version": "1.0"}
      """
    }

    /// Three layers, of which the lowest has the only table.
    private func withTable(
      _ options: ByteString..., body: (Mount, [ByteString]) throws -> Void
    ) throws {
      let folder = try TemporaryFolder()
      let layers = try ["top", "middle", "main"].map { try folder.folder($0) }
      for layer in layers { try (layer / "app").makeDirectory() }
      try (layers[2] / "app/fr.lproj").makeDirectory()
      try (layers[2] / Self.name).write("\"t\" = \"table\";\n")
      var setup = MountSetup(
        main: layers[2], point: try folder.folder("mount"), substitutions: Array(layers[..<2]))
      setup.options = ["strings=merge"] + options
      try withMount(setup) { try body($0, layers) }
    }

    /// Waits until all changes show, and compares content, size and listing.
    private func expect(
      _ lines: [String], _ mount: Mount, _ location: SourceLocation = #_sourceLocation
    ) throws {
      try mount.barrier()
      let table = mount.point / Self.name
      let text = try table.readText()
      #expect(text == Self.text(lines), sourceLocation: location)
      #expect(try table.status().size == Int64(text.utf8.count), sourceLocation: location)
      let listed = try Command("ls", "-il", table.parent.text).check().outputText
      let status = try table.status()
      #expect(
        listed.contains(" \(status.size) ") && listed.contains("\(status.inode) "), "\(listed)",
        sourceLocation: location)
    }

    private static func text(_ lines: [String]) -> String { lines.joined(separator: "\n\n") + "\n" }

    private static let own = "\"t\" = \"table\";"
    private static func line(_ value: String) -> String { "\"c\" = \"\(value)\";" }

    @Test(
      "a catalog that comes, changes, is replaced, renamed, hidden or removed shows at once",
      .timeLimit(.minutes(1)), arguments: ["announce=on", "announce=off"] as [ByteString])
    func changes(announce: ByteString) throws {
      try withTable(announce) { mount, layers in
        try expect([Self.own], mount)
        let catalog = layers[1] / Self.catalog
        try catalog.write(Self.text("c", "one"))
        try expect([Self.line("one"), Self.own], mount)
        let time = try (mount.point / Self.name).status().modified
        #expect(try time == catalog.status().modified)
        try catalog.write(Self.text("c", "two"))
        try expect([Self.line("two"), Self.own], mount)
        try (layers[1] / "new").write(Self.text("c", "three"))
        try (layers[1] / "new").rename(to: catalog)
        try expect([Self.line("three"), Self.own], mount)
        try catalog.rename(to: layers[1] / "app/Other.xcstrings")
        try expect([Self.own], mount)
        try (layers[1] / "app/Other.xcstrings").rename(to: catalog)
        try expect([Self.line("three"), Self.own], mount)
        try (layers[0] / Self.catalog).makeWhiteout()
        try expect([Self.own], mount)
        try (layers[0] / Self.catalog).remove()
        try expect([Self.line("three"), Self.own], mount)
        try (layers[0] / "app/.wh.Main.xcstrings").write("")
        try expect([Self.own], mount)
        try (layers[0] / "app/.wh.Main.xcstrings").remove()
        try expect([Self.line("three"), Self.own], mount)
        try catalog.write(Self.text("c", "x", language: "de"))
        try expect([Self.own], mount)
        try (layers[2] / Self.catalog).write(Self.text("c", "below"))
        try expect([Self.own, Self.line("below")], mount)
        try catalog.remove()
        try (layers[2] / Self.catalog).remove()
        try expect([Self.own], mount)
      }
    }

    @Test(
      "a folder above that comes, becomes opaque or goes takes its catalogs along", .timeLimit(.minutes(1)))
    func foldersAbove() throws {
      try withTable { mount, layers in
        try (layers[2] / Self.catalog).write(Self.text("c", "main"))
        try expect([Self.own, Self.line("main")], mount)
        (layers[0] / "app").removeTree()
        try expect([Self.own, Self.line("main")], mount)
        try (layers[0] / "prepared").makeDirectory()
        try (layers[0] / "prepared/Main.xcstrings").write(Self.text("c", "top"))
        try (layers[0] / "prepared").rename(to: layers[0] / "app")
        try expect([Self.line("top"), Self.own], mount)
        try (layers[0] / "app").rename(to: layers[0] / "prepared")
        try expect([Self.own, Self.line("main")], mount)
        // The folder of a language becomes another one's.
        try (layers[2] / Self.catalog).write(Self.text("c", "deutsch", language: "de"))
        try expect([Self.own], mount)
        try (layers[2] / "app/fr.lproj").rename(to: layers[2] / "app/de.lproj")
        try mount.barrier()
        let german = try (mount.point / "app/de.lproj/Main.strings").readText()
        #expect(german == Self.text([Self.own, Self.line("deutsch")]))
      }
    }

    @Test("programs that watch the folder of a language hear of a catalog", .timeLimit(.minutes(1)))
    func watching() throws {
      try withTable { mount, layers in
        let watcher = try MountWatcher(mount.point, ["app/fr.lproj"])
        _ = try (mount.point / Self.name).readText()
        for value in ["one", "two"] {
          try (layers[0] / Self.catalog).write(Self.text("c", value))
          #expect(try watcher.receives(.modified, "Main.strings", in: "app/fr.lproj"), "\(value)")
          try mount.barrier()
          try watcher.discardEvents()
        }
        try (layers[0] / Self.catalog).remove()
        #expect(try watcher.receives(.modified, "Main.strings", in: "app/fr.lproj"))
      }
    }

    @Test("a worker's death loses no change of a catalog", .timeLimit(.minutes(1)))
    func deaths() throws {
      try withTable { mount, layers in
        // No language of the table, so that it is shown as it is.
        try (layers[1] / Self.catalog).write(Self.text("c", "x", language: "de"))
        try expect([Self.own], mount)
        for round in 0..<4 {
          let worker = mount.worker
          mount.signalWorker(SIGSTOP)
          try (layers[1] / Self.catalog).write(Self.text("c", "\(round)", language: round == 2 ? "de" : "fr"))
          kill(worker, SIGKILL)
          try expect(round == 2 ? [Self.own] : [Self.line("\(round)"), Self.own], mount)
        }
      }
    }

    @Test("a layer that is added or removed brings and takes its catalogs", .timeLimit(.minutes(1)))
    func layers() throws {
      try withTable { mount, layers in
        let folder = try TemporaryFolder()
        try expect([Self.own], mount)
        let added = try folder.folder("added")
        try (added / "app").makeDirectory()
        try (added / Self.catalog).write(Self.text("c", "added"))
        try mount.command("layers", "add", added)
        // Without a barrier, which is not needed then.
        #expect(try (mount.point / Self.name).readText() == Self.text([Self.line("added"), Self.own]))
        try mount.command("layers", "remove", added)
        #expect(try (mount.point / Self.name).readText() == Self.text([Self.own]))
        var zip = ZipBuilder()
        zip.add(ZipBuilder.Entry("app/Main.xcstrings", Array(Self.text("c", "packed").utf8), .deflated))
        try (folder.path / "pack.zip").write(zip.bytes)
        try mount.command("layers", "add", folder.path / "pack.zip")
        try expect([Self.line("packed"), Self.own], mount)
        zip = ZipBuilder()
        zip.add(ZipBuilder.Entry("app/Main.xcstrings", Array(Self.text("c", "again").utf8), .deflated))
        try (folder.path / "pack.zip").replace(zip.bytes)
        try expect([Self.line("again"), Self.own], mount)
      }
    }

    @Test(
      "layer, status, diff and other options name or respect a catalog as a table", .timeLimit(.minutes(1)))
    func reports() throws {
      try withTable("case=insensitive") { mount, layers in
        try (layers[0] / "app/MAIN.xcstrings").write(Self.text("c", "top"))
        try expect([Self.line("top"), Self.own], mount)
        #expect(try (mount.point / "APP/FR.LPROJ/main.STRINGS").readText().contains("top"))
        let names = "\(layers[0]):\(layers[2])"
        #expect(try (mount.point / Self.name).attribute("user.bundlefs.layer") == Array(names.utf8))
        #expect(
          try (mount.point / Self.name).attribute("user.bundlefs.path") == (layers[2] / Self.name).bytes)
        let tree = try mount.command("tree").outputText
        #expect(tree.contains("Main.strings  (\(layers[0]), \(layers[2]), merged)"), "\(tree)")
        try (layers[0] / "app/MAIN.xcstrings").write("{\"strings\": {\n  \"a\": }")
        try expect([Self.own], mount)
        let status = try mount.command("status").outputText
        #expect(status.contains("\(layers[0] / "app/Main.xcstrings"):2:"), "\(status)")
      }
      try withTable("hide=Main.xcstrings") { mount, layers in
        try (layers[0] / Self.catalog).write(Self.text("c", "top"))
        try expect([Self.own], mount)
      }
      try withTable("cache=none") { mount, layers in
        try (layers[0] / Self.catalog).write(Self.text("c", "top"))
        #expect(try (mount.point / Self.name).readText().contains("top"))
      }
    }

    @Test("apply leaves a catalog and its tables in their layer", .timeLimit(.minutes(1)))
    func apply() throws {
      try withTable { mount, layers in
        try (layers[0] / Self.catalog).write(Self.text("t", "top"))
        try expect(["\"t\" = \"top\";"], mount)
        try (layers[2] / Self.name).remove()
        try (layers[0] / "app/fr.lproj").makeDirectory()
        try (layers[0] / Self.name).write("\"t\" = \"own\";\n")
        try expect(["\"t\" = \"own\";"], mount)
        try (layers[0] / Self.name).rename(to: layers[2] / Self.name)
        try expect(["\"t\" = \"top\";"], mount)
        try (layers[2] / Self.name).rename(to: layers[0] / Self.name)
        let outcome = try Command([try Binary.underTest(), "apply", mount.point, "--yes"]).run()
        #expect(outcome.status == 1 && outcome.outputText.contains("strings=merge"), "\(outcome)")
        try expect(["\"t\" = \"own\";"], mount)
        #expect((layers[0] / Self.catalog).exists && (layers[0] / Self.name).exists)
      }
    }
  }
}
