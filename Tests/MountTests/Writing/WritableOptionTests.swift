import Glibc
import Posix
import TestSupport
import Testing

/// The option `writable`.
extension MountTests.ExclusiveTests {
  @Suite struct WritableOptionTests {
    private func expectRefusal(
      _ fixture: Fixture, _ options: ByteString, status: Int = 1, naming words: String...,
      location: SourceLocation = #_sourceLocation
    ) throws {
      let outcome = try Command([try Binary.underTest(), fixture.main, fixture.point, "-f", "-o", options])
        .run(timeout: 20)
      let message = Comment("\(options): exit \(outcome.status): \(outcome.errorText)")
      #expect(outcome.status == status, message, sourceLocation: location)
      #expect(outcome.errorText.split(separator: "\n").count == 1, message, sourceLocation: location)
      for word in words { #expect(outcome.errorText.contains(word), message, sourceLocation: location) }
      #expect(try MountTable.entry(at: fixture.point) == nil, message, sourceLocation: location)
    }

    @Test("'writable' needs a substitution, which is a folder", .timeLimit(.minutes(1)))
    func needsFolder() throws {
      let fixture = try Fixture()
      try expectRefusal(
        fixture, "writable", status: 2, naming: "writable", "substitution=DIR", "writable=DIR")
      let archive = fixture.folder / "archive.zip"
      try archive.write(ZipBuilder([.init("entry", Array("x".utf8))]).bytes)
      try expectRefusal(fixture, "substitution=" + archive + ",writable", naming: "archive", archive.text)
      try expectRefusal(fixture, "writable=" + archive, naming: archive.text)
      try expectRefusal(fixture, "writable=" + fixture.main / "plain.txt", naming: "plain.txt")
      // Its parent is not made.
      let deep = fixture.folder / "missing/folder"
      try expectRefusal(fixture, "writable=" + deep, naming: deep.text)
    }

    @Test("a folder that would show its files twice is refused", .timeLimit(.minutes(1)))
    func nested() throws {
      let fixture = try Fixture()
      let inside = fixture.main / "folder"
      try expectRefusal(fixture, "writable=" + inside, naming: inside.text, "inside")
      try expectRefusal(fixture, "writable=" + fixture.main / "new", naming: "inside")
      #expect(!(fixture.main / "new").exists, "a refused mount makes nothing in MAIN")
      try expectRefusal(fixture, "writable=" + fixture.main, naming: fixture.main.text)
      try expectRefusal(fixture, "writable=" + fixture.folder.path, naming: "contains", fixture.main.text)
      let link = fixture.folder / "link"
      try link.makeLink(to: inside)
      try expectRefusal(fixture, "writable=" + link, naming: "inside")
      // A folder whose name begins alike is another one.
      let similar = fixture.main + "-changes"
      var setup = fixture.setup
      setup.options = ["writable=" + similar]
      try withMount(setup) { try ($0.point / "x").write("x") }
      #expect((similar / "x").exists)
    }

    @Test("a folder on a read-only file system is refused", .timeLimit(.minutes(1)))
    func readOnly() throws {
      let fixture = try Fixture()
      let folder = try fixture.folder.folder("disk")
      try Command("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder.text).check()
      try expectRefusal(fixture, "writable=" + folder, naming: folder.text, "Read-only")
    }

    @Test("'writable=DIR' makes DIR, which is the top layer", .timeLimit(.minutes(1)))
    func directory() throws {
      let fixture = try Fixture()
      let changes = fixture.folder / "changes"
      var setup = fixture.setup
      setup.options = ["writable=" + changes]
      for round in 1...2 {
        try withMount(setup) { mount in
          #expect(
            try mount.report().layers.map(\.path)
              == [changes, fixture.substitution, fixture.main].map(\.text))
          #expect(try (mount.point / "plain.txt").readText() == (round == 1 ? "main's plain\n" : "changed\n"))
          try (mount.point / "plain.txt").write("changed\n")
          try (mount.point / "replaced.txt").write("changed\n")
          if round == 1 { try (mount.point / "folder/added.txt").remove() }
          #expect(!(mount.point / "folder/added.txt").exists)
        }
      }
      #expect(try changes.names() == ["folder", "plain.txt", "replaced.txt"])
      #expect((changes / "folder/added.txt").isWhiteout)
      #expect(try (fixture.substitution / "replaced.txt").readText() == "substitution's replaced, longer\n")
      #expect(try (fixture.substitution / "folder/added.txt").readText() == "substitution's added\n")
      try expectUntouchedMain(fixture)
    }

    @Test("the substitution is made if it does not exist", .timeLimit(.minutes(1)))
    func missingSubstitution() throws {
      let fixture = try Fixture()
      var setup = MountSetup(
        main: fixture.main, point: fixture.point, substitutions: [fixture.folder / "missing"])
      setup.options = ["writable"]
      try withMount(setup) { mount in
        #expect(try mount.report().layers.first?.path == (fixture.folder / "missing").text)
        try (mount.point / "x").write("x")
      }
      #expect(try (fixture.folder / "missing").names() == ["x"])
    }

    @Test("the work folder is never shown, and gone after the unmount", .timeLimit(.minutes(1)))
    func workFolder() throws {
      let fixture = try Fixture()
      let work = fixture.substitution / ".wh..wh.bundlefs-work"
      try withWritable(fixture: fixture) { mount, _ in
        try (mount.point / "plain.txt").remove()
        try Command("rm", "-r", (mount.point / "only").text).check()
        try (mount.point / "only").makeDirectory()
        #expect(work.exists)
        #expect(try mount.names() == ["folder", "link", "only", "replaced.txt"])
        #expect(!(mount.point / work.lastComponent).exists)
      }
      #expect(!work.exists)
    }

    @Test("a layer takes the changes of one mount, also after deaths of its worker", .timeLimit(.minutes(2)))
    func exclusive() throws {
      let (fixture, other) = (try Fixture(), try Fixture())
      var setup = other.setup
      setup.options = ["writable=" + fixture.substitution]
      try withWritable(fixture: fixture) { mount, _ in
        try expectRefusal(other, setup.options[0], naming: fixture.substitution.text, "another mount")
        let former = mount.worker
        kill(former, SIGKILL)
        #expect(eventually(within: 20) { mount.worker != former && mount.worker != mount.process.pid })
        try (mount.point / "plain.txt").write("changed\n")
        let revert = try Command([Binary.underTest(), "revert", "--yes", mount.point, "plain.txt"]).run()
        #expect(revert.status == 0, "\(revert.errorText)")
        let successor = mount.worker
        try Command([Binary.underTest(), "upgrade", mount.point]).check()
        #expect(eventually(within: 20) { mount.worker != successor && mount.worker != mount.process.pid })
        try expectRefusal(other, setup.options[0], naming: "another mount")
      }
      #expect(!(fixture.substitution / ".wh..wh.bundlefs-work").exists)
      try withMount(setup) { try ($0.point / "x").write("x") }
      #expect((fixture.substitution / "x").exists)
    }

    @Test("a second mount that would write to a layer is refused at once", .timeLimit(.minutes(1)))
    func exclusiveAtOnce() throws {
      let (fixture, other) = (try Fixture(), try Fixture())
      try withWritable(fixture: fixture) { _, _ in
        let begin = TimeSpec.monotonic
        try expectRefusal(other, "writable=" + fixture.substitution, naming: "another mount")
        // Where it does not ask the other mount, it waits 5 s for its end.
        #expect(TimeSpec.monotonic.milliseconds(since: begin) < 4500)
      }
    }

    @Test(
      "a mount waits for copies of an unmounted one in other namespaces, and names those that stay",
      .timeLimit(.minutes(2)))
    func copies() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["writable"]
      defer { MountTable.abandon(setup.point) }
      try setup.command(foreground: false).check()
      let holder = try Child(Command(["unshare", "-m", "--propagation", "private", "sleep", "100"]))
      defer { try? holder.kill() }
      let hasCopy = eventually(within: 20) {
        (try? ByteString("/proc/\(holder.pid)/comm").readText()) == "sleep\n"
      }
      try #require(hasCopy)
      try Command(["umount", setup.point]).check()
      let refused = try setup.command(foreground: false).run()
      #expect(
        refused.status == 1 && refused.errorText.contains("of process \(holder.pid) (sleep) has a copy"))
      let waiting = try Child(setup.command(foreground: false))
      try holder.kill()
      #expect(try waiting.wait(timeout: 60).status == 0)
      try Command([Binary.underTest(), "unmount", setup.point]).check()
    }

    @Test("what a killed daemon left in the work folder is swept at the next mount", .timeLimit(.minutes(1)))
    func sweep() throws {
      let fixture = try Fixture()
      let work = fixture.substitution / ".wh..wh.bundlefs-work"
      try work.makeDirectory()
      // No process has this number.
      try (work / "4194305-1").write("half a copy")
      try (work / "4194305-2").makeDirectory()
      try (work / "4194305-2" / "file").write("x")
      try withWritable(fixture: fixture) { mount, _ in
        let names = try mount.names()
        #expect(names == Fixture.rootNames)
        #expect(try work.names() == ["whiteout"])
      }
      #expect(!work.exists)
    }

    @Test("the mount table says whether a mount is writable", .timeLimit(.minutes(1)))
    func mountTable() throws {
      let fixture = try Fixture()
      try withWritable(fixture: fixture) { mount, _ in
        let entry = try #require(try MountTable.bundlefs(at: mount.point))
        #expect(entry.options.split(separator: ",").contains("rw"), "\(entry.options)")
      }
    }
  }
}
