import FoundationEssentials
import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs diff` and `bundlefs tree`.
extension MountTests {
  @Suite struct ComparisonTests {
    private static func report(_ command: ByteString, _ mount: Mount, _ path: ByteString...) throws
      -> ComparisonReport
    {
      let command = Command([try Binary.underTest(), command, mount.point] + path + ["--json"])
      return try JSONDecoder().decode(ComparisonReport.self, from: Data(try command.check().output))
    }

    private func mounted(_ folder: TemporaryFolder, _ body: (Mount) throws -> Void) throws {
      let setup = MountSetup(
        main: try folder.folder("main"), point: try folder.folder("mount"),
        substitutions: [try folder.folder("A"), try folder.folder("B")])
      try withMount(setup, body)
    }

    @Test("a layer's entries that the mount's own ones hide are not compared", .timeLimit(.minutes(1)))
    func reserved() throws {
      let folder = try TemporaryFolder()
      try mounted(folder) { mount in
        for (layer, name) in [("main", "rsrc:"), ("A", "rsrc:")] as [(ByteString, ByteString)] {
          try (folder.path / layer / name).makeDirectories()
          try (folder.path / layer / name / "file").write("x")
        }
        try (folder.path / "A" / ".routes").write("x")
        try (folder.path / "A" / "mine").write("x")
        try mount.barrier()
        #expect(try Self.report("diff", mount).entries.map(\.path) == ["mine"])
        #expect(try Self.report("tree", mount).entries.map(\.path) == ["mine"])
      }
    }

    @Test(
      "diff and tree of random stacks match the model", .timeLimit(.minutes(2)),
      arguments: ModelTests.seeds.filter { $0 % 3 == 0 })
    func matchesModel(seed: UInt64) throws {
      let stack = GeneratedStack(seed: seed)
      try stack.mounted { mount, roots in
        let expected = ExpectedComparison(stack.layers, roots: roots).entries
        let (tree, diff) = (try Self.report("tree", mount), try Self.report("diff", mount))
        #expect(Self.differences(tree.entries, expected) == [], "seed \(seed)")
        #expect(diff.entries == tree.entries.filter(\.isDifference))
        for report in [tree, diff] {
          let counted = expected.filter(\.isDifference)
          #expect(report.overridden == counted.count { $0.verdict == "overridden" })
          #expect(report.added == counted.count { $0.verdict == "added" })
          #expect(report.hidden == counted.count { $0.verdict == "hidden" })
          #expect(
            report.unchanged == expected.count { $0.verdict == "unchanged" && $0.kind != "directory" })
          #expect(report.layers.map(\.path) == roots.map(\.text))
          #expect(report.layers.reduce(0) { $0 + $1.overrides + $1.adds + $1.hides } == counted.count)
        }
      }
    }

    private static func differences(_ seen: [ComparisonEntry], _ expected: [ComparisonEntry]) -> [String] {
      let (seen, expected) = (seen.map { "\($0)" }, expected.map { "\($0)" })
      return Set(seen).symmetricDifference(expected).sorted().prefix(10).map { $0 }
        + (seen.count == expected.count ? [] : ["\(seen.count) instead of \(expected.count)"])
    }

    @Test(
      "an archive with a folder around its files earns a hint, unless MAIN has it", .timeLimit(.minutes(1)))
    func wrapperHint() throws {
      let folder = try TemporaryFolder()
      try (folder.folder("main") / "info").write("")
      let archive = folder / "mod.zip"
      try archive.write(ZipBuilder([.init("Mod/info", "modded")]).bytes)
      let setup = MountSetup(
        main: folder / "main", point: try folder.folder("mount"), substitutions: [archive])
      try withMount(setup) { mount in
        func text(_ command: String) throws -> String {
          try Command([try Binary.underTest(), ByteString(command), mount.point]).check().outputText
        }
        let hint = "hint: use \(archive.text)!/Mod\n"
        #expect(try text("diff").contains("  \(hint)") && text("status").contains("    \(hint)"))
        try mount.setLayers([archive + "!/Mod"])
        #expect(try text("diff").contains("overrides  info") && !text("diff").contains("hint"))
        try mount.setLayers([archive])
        _ = try folder.folder("main/Mod")
        try mount.barrier()
        #expect(try !text("diff").contains("hint") && !text("status").contains("hint"))
      }
    }

    @Test("the text output, with control characters escaped", .timeLimit(.minutes(1)))
    func text() throws {
      let folder = try TemporaryFolder()
      try (folder.folder("main/Resources") / "logo.svg").write("1")
      try (folder / "main/info").write("")
      try (folder.folder("main/Docs/deep") / "x").write("")
      try (folder.folder("A/Resources") / "logo.svg").write("2")
      try (folder / "A/.wh.Docs").write("")
      try (folder.folder("B/Resources") / "new\u{1B}[31m").write("")
      try mounted(folder) { mount in
        let (a, b) = ((folder / "A").text, (folder / "B").text)
        #expect(
          try Command([try Binary.underTest(), "diff", mount.point]).check().outputText == """
            \(a)
              hides      Docs/  (beats MAIN)
              overrides  Resources/logo.svg  (beats MAIN)
            \(b)
              adds       Resources/new\\x1B[31m
            1 overridden, 1 added, 1 hidden, 1 unchanged

            """)
        #expect(
          try Command([try Binary.underTest(), "tree", mount.point]).check().outputText == """
            \(mount.point)
            ├── Docs/  (hidden by \(a))
            ├── Resources/
            │   ├── logo.svg  (\(a), overrides)
            │   └── new\\x1B[31m  (\(b), adds)
            └── info
            1 overridden, 1 added, 1 hidden, 1 unchanged

            """)
        try (folder / "B/Resources/logo.svg").write("3")
        try (folder / "B/Resources/new\u{1B}[31m").remove()
        try mount.barrier()
        #expect(
          try Command([try Binary.underTest(), "diff", mount.point]).check().outputText == """
            \(a)
              hides      Docs/  (beats MAIN)
              overrides  Resources/logo.svg  (beats B, MAIN)
            \(b)  contributes nothing
            1 overridden, 0 added, 1 hidden, 1 unchanged

            """)
        try (folder / "B/Resources/logo.svg").remove()
        try (folder / "B/Resources/new\u{1B}[31m").write("")
        try mount.barrier()
        let part = try Self.report("tree", mount, mount.point / "Resources")
        #expect(part.entries.map(\.path) == ["Resources/logo.svg", "Resources/new\u{1B}[31m"])
        #expect(try Self.report("diff", mount, "/Resources/").entries == part.entries)
      }
    }

    @Test(
      "diff and tree of a mount over MAIN, with an archive and a large directory", .timeLimit(.minutes(1)))
    func largeArchiveOverMain() throws {
      let folder = try TemporaryFolder()
      let main = try folder.folder("main")
      // The reply spans several pages and IOCTL requests.
      for number in 0..<3000 { try (main / ByteString("file \(number) with a long name")).write("") }
      let zip = folder / "layer.zip"
      try zip.write(
        ZipBuilder(
          (0..<1500).map { .init(ByteString("file \($0) with a long name"), "z") } + [.init("own", "")]
        )
        .bytes)
      let setup = MountSetup(main: main, point: main, substitutions: [zip])
      try withMount(setup) { mount in
        let report = try Self.report("diff", mount)
        #expect((report.overridden, report.added, report.hidden, report.unchanged) == (1500, 1, 0, 1500))
        #expect(report.entries.allSatisfy { $0.layer == zip.text })
        #expect(report.entries.filter { $0.verdict == "overridden" }.allSatisfy { $0.below == [main.text] })
        #expect(try Self.report("tree", mount).entries.count == 3001)
      }
    }

    @Test("concurrent tree commands do not interfere", .timeLimit(.minutes(1)))
    func concurrentCommands() throws {
      let folder = try TemporaryFolder()
      for number in 0..<6000 {
        try (folder.folder(ByteString("main/\(number % 2)")) / ByteString("\(number) with a long name"))
          .write("")
      }
      try mounted(folder) { mount in
        let commands = try (0..<8).map { number in
          try Child(
            Command([try Binary.underTest(), "tree", mount.point, ByteString("\(number % 2)"), "--json"]))
        }
        for (number, command) in commands.enumerated() {
          let outcome = try command.wait(timeout: 50)
          #expect(outcome.status == 0, "\(outcome.errorText)")
          let report = try JSONDecoder().decode(ComparisonReport.self, from: Data(outcome.output))
          #expect(report.entries.count == 3000 && report.unchanged == 3000)
          #expect(report.entries.allSatisfy { $0.path.hasPrefix("\(number % 2)/") })
        }
      }
    }

    @Test("errors name the wrong argument or path", .timeLimit(.minutes(1)))
    func errors() throws {
      let folder = try TemporaryFolder()
      try (folder.folder("main") / "file").write("")
      try mounted(folder) { mount throws in
        func outcome(_ arguments: ByteString...) throws -> (Int, String) {
          let outcome = try Command([try Binary.underTest()] + arguments).run()
          return (outcome.status, outcome.errorText)
        }
        #expect(try outcome("diff").0 == 2)
        #expect(try outcome("tree", mount.point, "--colour").1.contains("'tree' has no option '--colour'"))
        #expect(
          try outcome("diff", mount.point, "nowhere") == (
            1, "bundlefs: \(mount.point)/nowhere: No such file or directory\n"
          ))
        #expect(
          try outcome("tree", mount.point, "file") == (1, "bundlefs: \(mount.point)/file: Not a directory\n"))
        #expect(try outcome("diff", mount.point, "rsrc:").0 == 1)
        #expect(try outcome("diff", folder / "main").1.contains("no bundlefs is mounted there"))
      }
    }
  }
}
