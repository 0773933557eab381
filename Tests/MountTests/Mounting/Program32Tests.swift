import Glibc
import Posix
import TestSupport
import Testing

/// Programs of 32 bits without large-file support, such as old games and Wine's: directory offsets must fit 31 bits,
/// inode numbers 32.
extension MountTests {
  @Suite struct Program32Tests {
    private static let permanentCount = 100_000

    /// Compiles the program `list32`.
    private func program(in folder: TemporaryFolder) throws -> ByteString {
      let source = ByteString(#filePath).parent / "list32.c"
      try Command(["gcc", "-m32", "-Wall", "-Werror", "-o", folder.path / "list32", source]).check()
      return folder.path / "list32"
    }

    /// A folder in which every other name is MAIN's.
    private func fill(_ fixture: Fixture) throws {
      try (fixture.main / "many").makeDirectory()
      try (fixture.substitution / "many").makeDirectory()
      let script = #"cd "$1" && seq -f p%.0f "$2" 2 "$3" | xargs touch"#
      for (layer, first) in [(fixture.main, 0), (fixture.substitution, 1)] {
        try Command.shell(
          script, layer / "many", ByteString("\(first)"), ByteString("\(Self.permanentCount - 1)")
        ).check()
      }
    }

    private func expectPermanentNamesOnce(_ text: String, _ comment: Comment? = nil) {
      let names = text.split(separator: "\n")
      let permanent = names.filter { $0.hasPrefix("p") }
      #expect(permanent.count == Self.permanentCount, comment)
      #expect(Set(permanent).count == Self.permanentCount, comment)
      #expect(names.count { $0 == "." } == 1 && names.count { $0 == ".." } == 1, comment)
    }

    @Test("100,000 names are listed once each, whatever comes and goes meanwhile", .timeLimit(.minutes(5)))
    func changes() throws {
      let fixture = try Fixture(isFilled: false)
      let program = try program(in: fixture.folder)
      try fill(fixture)
      var setup = fixture.setup
      setup.lifetime = 240
      try withMount(setup) { mount in
        let isStopping = Locked(false)
        let layers = [fixture.main, fixture.substitution]
        let churn = try LoopThread("churn", until: isStopping) { thread in
          for number in 0..<200 {
            let path = layers[number % 2] / "many" / ByteString("t\(number)")
            if path.exists { try path.remove() } else { try path.write("") }
          }
        }
        defer {
          isStopping.withLock { $0 = true }
          _ = eventually(within: 20) { churn.isFinished }
        }
        for round in 0..<3 {
          let before = churn.iterations
          let outcome = try Command([program, mount.point / "many"]).check(timeout: 90)
          expectPermanentNamesOnce(outcome.outputText, "round \(round)")
          #expect(churn.iterations > before && churn.failure == nil)
        }
      }
    }

    @Test("a listing continues in a successor of the worker", .timeLimit(.minutes(5)))
    func death() throws {
      let fixture = try Fixture(isFilled: false)
      let program = try program(in: fixture.folder)
      try fill(fixture)
      try withMount(fixture.setup) { mount in
        for pause in [0, 1000, 70_000] {
          let go = fixture.folder.path / ByteString("go\(pause)")
          let child = try Child(Command([program, mount.point / "many", ByteString("\(pause)"), go]))
          #expect(eventually(within: 30) { child.outputText.split(separator: "\n").count > pause })
          let worker = mount.worker
          kill(worker, SIGKILL)
          #expect(eventually(within: 20) { mount.worker != worker && mount.worker != mount.process.pid })
          // What the kernel has cached of the listing goes.
          try (fixture.main / "many" / ByteString("t\(pause)")).write("")
          try mount.barrier()
          try go.write("")
          let outcome = try child.wait(timeout: 60)
          #expect(outcome.status == 0, "\(outcome.errorText)")
          expectPermanentNamesOnce(outcome.outputText, "after \(pause)")
        }
      }
    }

    @Test(
      "stat succeeds on folders, entries of archives and files of several file systems",
      .timeLimit(.minutes(1)), arguments: ["ro", "writable", "case=insensitive"])
    func numbers(option: String) throws {
      let fixture = try Fixture()
      let program = try program(in: fixture.folder)
      let second = try fixture.folder.folder("second")
      try Command("mount", "-t", "tmpfs", "second", second.text).check()
      defer { MountTable.abandon(second, isFuse: false) }
      for name in ["on tmpfs", "folder/on tmpfs, too", "only/there/file"] as [ByteString] {
        try (second / name).parent.makeDirectories()
        try (second / name).write("")
      }
      let archive = ZipBuilder([
        .init("entry", "1"), .init("folder/entry", "2"), .init("only/packed/entry", "3"),
      ])
      try (fixture.folder.path / "layer.zip").write(archive.bytes)
      var setup = MountSetup(main: fixture.main, point: fixture.point)
      setup.substitutions = [fixture.substitution, second, fixture.folder.path / "layer.zip"]
      setup.options = [ByteString(option), "list_routes"]
      try withMount(setup) { mount in
        let folders =
          ["", "folder", "only", "only/there", "only/packed", "rsrc:", "rsrc:/folder"] as [ByteString]
        for folder in folders + (option == "writable" ? ["made"] : []) {
          if folder == "made" {
            try (mount.point / "made/inner").makeDirectories()
            try (mount.point / "made/file").write("")
          }
          let outcome = try Command([program, mount.point / folder]).run()
          #expect(outcome.status == 0, "\(folder): \(outcome.errorText)")
          #expect(outcome.outputText.split(separator: "\n").count > 2, "\(folder)")
        }
        // No two entries share a number.
        let all = try Command("find", mount.point.text, "-printf", "%i\\n").check().outputText
        let numbers = all.split(separator: "\n")
        #expect(numbers.count >= 15 && Set(numbers).count == numbers.count)
        #expect(numbers.allSatisfy { UInt32($0) != nil })
      }
    }
  }
}
