import Foundation
import Posix
import TestSupport
import Testing

/// `bundlefs apply`.
extension MountTests {
  @Suite struct ApplyTests {
    @Test(
      "overrides, additions and deletions go to MAIN, with all attributes", .timeLimit(.minutes(1)),
      arguments: [[], ["writable"]] as [[ByteString]])
    func entries(options: [ByteString]) throws {
      let fixture = try Fixture()
      let (top, main) = (fixture.substitution, fixture.main)
      try (top / "replaced.txt").setOwner(1234, group: 2345)
      try (top / "replaced.txt").setMode(0o6751)
      try (top / "replaced.txt").setAttribute("user.colour", [1, 2, 3])
      try (top / "replaced.txt").setModified(TimeSpec(seconds: 1_000_000_000, nanoseconds: 123_456_789))
      try (top / "new/deep").makeDirectories()
      try (top / "new/pipe").makeNode(mode: FileKind.fifo.rawValue | 0o640)
      try (top / "new/deep/one").write("one")
      try (top / "new/two").makeHardLink(of: top / "new/deep/one")
      try (top / "only").makeLink(to: "folder")
      try (top / "plain.txt").makeWhiteout()
      try (top / ".wh.link").write("")
      try (top / "folder").setMode(0o2711)
      var setup = fixture.setup
      setup.options = options
      try withMount(setup) { mount throws in
        let former = try Apply.snapshot(mount.point)
        let outcome = try Apply.run(mount)
        #expect(outcome.status == 0 && outcome.errorText == "", "\(outcome)")
        #expect(
          outcome.outputText.contains("  removes    plain.txt\n")
            && outcome.outputText.contains("  replaces   only  (with 2 entries)")
            && outcome.outputText.contains("3 replaced, 6 added, 2 removed, 1 changed, 0 dropped, 0 kept"),
          "\(outcome.outputText)")
        #expect(Apply.differences(former, try Apply.snapshot(mount.point)) == [])
        #expect(try Apply.names(top) == [])
      }
      #expect(try main.names() == ["folder", "new", "only", "replaced.txt"])
      let status = try (main / "replaced.txt").status()
      #expect(status.owner == 1234 && status.group == 2345 && status.permissions == 0o6751)
      #expect(status.modified == TimeSpec(seconds: 1_000_000_000, nanoseconds: 123_456_789))
      #expect(try (main / "replaced.txt").attributeNames() == ["user.colour"])
      #expect(try (main / "new/two").status().inode == (main / "new/deep/one").status().inode)
      #expect(try (main / "folder").status().permissions == 0o2711)
      #expect(try (main / "folder").names() == ["added.txt", "both.txt", "inner.txt"])
    }

    @Test("what an opaque directory hides goes as a whole", .timeLimit(.minutes(1)))
    func opaque() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "folder/.wh..wh..opq").write("")
      try withMount(fixture.setup) { mount throws in
        let part = try Apply.run(mount, "folder/added.txt")
        #expect(part.status == 1 && part.outputText.contains("a directory above is opaque"), "\(part)")
        #expect(try (mount.point / "folder").names() == ["added.txt", "both.txt"])
        #expect(try Apply.run(mount, "folder").status == 0)
        #expect(try (mount.point / "folder").names() == ["added.txt", "both.txt"])
        #expect(try Apply.names(fixture.substitution) == ["replaced.txt"])
      }
      #expect(try (fixture.main / "folder").names() == ["added.txt", "both.txt"])
    }

    @Test("a folder layer between MAIN and the top one takes it with '--to'", .timeLimit(.minutes(1)))
    func otherTarget() throws {
      let fixture = try Fixture()
      let second = try fixture.folder.folder("second")
      try (second / "plain.txt").write("second's")
      try (fixture.substitution / "plain.txt").makeWhiteout()
      try (fixture.substitution / "link").makeWhiteout()
      var setup = fixture.setup
      setup.substitutions.append(second)
      try withMount(setup) { mount throws in
        let former = try Apply.snapshot(mount.point)
        let kept = try Apply.run(mount)
        #expect(kept.status == 1)
        #expect(
          kept.outputText.contains("keeps      plain.txt  (second lies between, and what it has would show)"))
        #expect(Apply.differences(former, try Apply.snapshot(mount.point)) == [])
        #expect(try Apply.run(mount, "--to", "second").status == 0)
        #expect(Apply.differences(former, try Apply.snapshot(mount.point)) == [])
        #expect(try Apply.names(fixture.substitution) == [])
        #expect((second / "plain.txt").isWhiteout)
      }
      // Nothing lies below MAIN.
      #expect(!(fixture.main / "link").exists)
      #expect(try (fixture.main / "plain.txt").readText() == "main's plain\n")
    }

    @Test("a dry run prints the plan and changes nothing; a terminal is asked", .timeLimit(.minutes(1)))
    func question() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount throws in
        let refused = try Apply.run(mount, asksNot: false)
        #expect(refused.status == 1 && refused.errorText.contains("add '--yes'"), "\(refused)")
        let dry = try Apply.run(mount, "--dry-run", asksNot: false)
        #expect(dry.status == 0 && dry.outputText.contains("replaces   replaced.txt"), "\(dry)")
        let json = try Apply.run(mount, "--dry-run", "--json", asksNot: false)
        let object = try JSONSerialization.jsonObject(with: Data(json.output)) as? [String: Any]
        #expect(object?["replaced"] as? Int == 2 && object?["added"] as? Int == 1, "\(json.outputText)")
        #expect((object?["entries"] as? [Any])?.count == 3)
        for (answer, status) in [("n", 1), ("", 1), ("y", 0)] {
          #expect((fixture.substitution / "replaced.txt").exists)
          let line = #"script -qec "'$1' apply '$2'" /dev/null <<< "$3""#
          let asked = try Command.shell(line, try Binary.underTest(), mount.point, ByteString(answer)).run()
          #expect(asked.status == status)
          #expect(asked.outputText.contains("Apply to \(fixture.main)?"), "\(asked.outputText)")
        }
        #expect(try Apply.names(fixture.substitution) == [])
      }
      #expect(try (fixture.main / "replaced.txt").readText() == "substitution's replaced, longer\n")
    }

    @Test("archives, covered and overlapping layers, and what is nowhere", .timeLimit(.minutes(1)))
    func refusedLayers() throws {
      let fixture = try Fixture()
      let archive = fixture.folder / "layer.zip"
      try archive.write(ZipBuilder([.init("plain.txt", "packed")]).bytes)
      let inner = try fixture.folder.folder("main/inner")
      let setups: [(MountSetup, [ByteString], String)] = [
        (MountSetup(main: fixture.main, point: fixture.point), [], "there is no layer above MAIN"),
        (MountSetup(main: fixture.main, point: fixture.point, substitutions: [archive]), [], "is an archive"),
        (
          MountSetup(main: archive, point: fixture.point, substitutions: [fixture.substitution]), [],
          "an archive, which cannot be changed"
        ),
        (
          MountSetup(main: fixture.main, point: fixture.main, substitutions: [fixture.substitution]), [],
          "the mount covers this layer"
        ),
        (MountSetup(main: fixture.main, point: fixture.point, substitutions: [inner]), [], "overlap"),
        (fixture.setup, ["missing"], "missing: No such file or directory"),
        (fixture.setup, [".routes"], "belongs to the mount itself"),
        (fixture.setup, ["--to", "substitution"], "the top layer itself"),
      ]
      for (setup, words, text) in setups {
        try withMount(setup) { mount throws in
          let command = Command([try Binary.underTest(), "apply", mount.point, "--yes"] + words)
          let outcome = try command.run()
          #expect(outcome.status == 1 && outcome.errorText.contains(text), "\(outcome.errorText)")
        }
      }
      #expect(try fixture.substitution.names() == ["folder", "replaced.txt"])
      #expect(try (fixture.main / "replaced.txt").readText() == "main's replaced\n")
    }

    @Test("a table with some of the strings does not replace the whole one", .timeLimit(.minutes(1)))
    func tables() throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Main.strings").write("\"a\" = \"main\"; \"b\" = \"main\";\n")
      try (fixture.substitution / "Main.strings").write("\"a\" = \"top\";\n")
      try (fixture.substitution / "Other.strings").write("\"c\" = \"top\";\n")
      try withMount(fixture.setup("strings=merge")) { mount throws in
        let former = try (mount.point / "Main.strings").readText()
        let outcome = try Apply.run(mount)
        #expect(outcome.status == 1 && outcome.outputText.contains("strings=merge"), "\(outcome)")
        #expect(try (mount.point / "Main.strings").readText() == former)
        #expect(try Apply.names(fixture.substitution) == ["Main.strings"])
      }
      #expect(try (fixture.main / "Other.strings").readText() == "\"c\" = \"top\";\n")
    }

    @Test("where case does not count, the target's spelling stays", .timeLimit(.minutes(1)))
    func spellings() throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Textures").makeDirectory()
      try (fixture.main / "Textures/Wall.dds").write("main's")
      try (fixture.main / "Textures/Gone.dds").write("main's")
      try (fixture.substitution / "textures").makeDirectory()
      try (fixture.substitution / "textures/WALL.dds").write("top's")
      try (fixture.substitution / "textures/.wh.GONE.dds").write("")
      try (fixture.substitution / "a").write("1")
      try (fixture.substitution / "A").write("2")
      try withMount(fixture.setup("case=insensitive")) { mount throws in
        let outcome = try Apply.run(mount, "TEXTURES")
        #expect(outcome.status == 0, "\(outcome)")
        #expect(try (mount.point / "textures/wall.DDS").readText() == "top's")
        let kept = try Apply.run(mount)
        #expect(kept.status == 1 && kept.outputText.contains("several spellings"), "\(kept)")
      }
      #expect(try (fixture.main / "Textures").names() == ["Wall.dds"])
      #expect(try fixture.main.names() == ["Textures"])
      #expect(try fixture.substitution.names() == ["A", "a"])
    }

    @Test("a file that is being read keeps its content, and no other shows", .timeLimit(.minutes(1)))
    func readers() throws {
      let fixture = try Fixture()
      let large = [UInt8](repeating: 7, count: 3 << 20)
      for index in 0..<20 { try (fixture.substitution / ByteString("large\(index)")).write(large) }
      for index in 0..<20 { try (fixture.main / ByteString("large\(index)")).write("old") }
      try withMount(fixture.setup) { mount throws in
        let child = try Child(Command([try Binary.underTest(), "apply", mount.point, "--yes"]))
        var reads = 0
        while child.status() == nil {
          for index in 0..<20 {
            // A file that was opened when it was replaced: ESTALE, as for any replaced file.
            guard let content = try? (mount.point / ByteString("large\(index)")).read() else { continue }
            #expect(content == large, "\(content.count) bytes")
            reads += 1
          }
        }
        #expect(try child.wait(timeout: 30).status == 0)
        #expect(reads > 0)
      }
    }

    @Test(
      "without privileges, directories that nothing may be added to are applied", .timeLimit(.minutes(1)))
    func unprivileged() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "only/deep").makeDirectories()
      try (fixture.substitution / "only/deep/more").write("more")
      for layer in [fixture.main, fixture.substitution] {
        for path in ["only/deep", "only"] as [ByteString] { try (layer / path).setMode(0o555) }
      }
      try withOpenDevice {
        let setup = try UnprivilegedTests().userSetup(fixture)
        let program = try #require(setup.binary)
        try Command("chown", "-R", "\(UnprivilegedTests.nobody)", fixture.folder.path.text).check()
        try withMount(setup) { mount throws in
          let former = try Apply.snapshot(fixture.main / "only")
          let outcome = try Command([program, "apply", mount.point, "--yes"])
            .asUser(UnprivilegedTests.nobody).run()
          #expect(outcome.status == 0 && outcome.errorText == "", "\(outcome.errorText)")
          #expect(try Apply.names(fixture.substitution) == [])
          #expect(try (fixture.main / "only/deep").names() == ["file.txt", "more"])
          #expect(try (fixture.main / "only/deep").status().permissions == 0o555)
          #expect(former.count == 3)
        }
      }
    }

    @Test("a full target keeps the top layer whole", .timeLimit(.minutes(1)))
    func full() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "large").write([UInt8](repeating: 7, count: 3 << 20))
      let small = try fixture.folder.folder("small")
      try Command(["mount", "-t", "tmpfs", "-o", "size=1m", "small", small]).check()
      defer { _ = try? Command(["umount", "-l", small]).run() }
      try (small / "large").write("old")
      let setup = MountSetup(main: small, point: fixture.point, substitutions: [fixture.substitution])
      try withMount(setup) { mount throws in
        let outcome = try Apply.run(mount)
        #expect(outcome.status == 1 && outcome.errorText.contains("large: No space left"), "\(outcome)")
        #expect(try (small / "large").readText() == "old")
        #expect(try Apply.names(fixture.substitution) == ["folder", "large", "replaced.txt"])
      }
    }
  }
}
