import Glibc
import Posix
import TestSupport
import Testing

/// The option `hide`.
extension MountTests {
  @Suite struct HideTests {
    private func fixture() throws -> Fixture {
      let fixture = try Fixture()
      for layer in [fixture.main, fixture.substitution] {
        try (layer / "folder/a.bak").write("bak")
        try (layer / "b.bak").write("bak")
        try (layer / "art/deep").makeDirectories()
        try (layer / "art/x.psd").write("psd")
        try (layer / "art/deep/x.psd").write("psd")
        try (layer / "x.psd").write("psd")
      }
      return fixture
    }

    private func expectMissing(_ path: ByteString, location: SourceLocation = #_sourceLocation) throws {
      try expectErrno(.noSuchFileOrDirectory, "\(path)", location: location) { _ = try path.status() }
      let listed = try path.parent.names().contains(path.lastComponent)
      #expect(!listed, "\(path)", sourceLocation: location)
    }

    @Test(
      "names and paths are neither found nor listed, live as well", .timeLimit(.minutes(1)),
      arguments: ["hide=*.bak:art/*.psd", #"hide=*.ba[a-k],hide=/art/?.psd"#, "hide=*.bak:**/art/x*"]
        as [ByteString])
    func entries(option: ByteString) throws {
      let fixture = try fixture()
      try withMount(fixture.setup(option)) { mount throws in
        let point = mount.point
        for path in ["folder/a.bak", "b.bak", "art/x.psd"] as [ByteString] { try expectMissing(point / path) }
        #expect(try (point / "art").names() == ["deep"])
        #expect(try (point / "art/deep").names() == ["x.psd"])
        #expect((point / "x.psd").exists)
        #expect(try (point / "folder").names() == ["added.txt", "both.txt", "inner.txt"])
        try (fixture.substitution / "folder/later.bak").write("x")
        try (fixture.main / "art/y.txt").write("x")
        try (fixture.main / "art/y.txt").rename(to: fixture.main / "later.bak")
        try (fixture.substitution / "folder/later.txt").write("x")
        try mount.barrier()
        #expect((point / "folder/later.txt").exists)
        for path in ["folder/later.bak", "later.bak", "art/y.txt"] as [ByteString] {
          try expectMissing(point / path)
        }
        // Renamed, as Mod Organizer does with files that are to take no part.
        try (fixture.substitution / "replaced.txt").rename(to: fixture.substitution / "replaced.txt.bak")
        try mount.barrier()
        #expect(try (point / "replaced.txt").readText() == "main's replaced\n")
        try expectMissing(point / "replaced.txt.bak")
      }
    }

    @Test("a folder is hidden with all in it, in archives and added layers as well", .timeLimit(.minutes(1)))
    func layers() throws {
      let fixture = try Fixture()
      let archive = fixture.folder / "layer.zip"
      try archive.write(
        ZipBuilder([.init("docs/readme", "1"), .init("data/docs/n", "2"), .init("data/n.tmp", "3")]).bytes)
      let second = try fixture.folder.folder("second")
      try (second / "docs").makeDirectory()
      try (second / "docs/other").write("x")
      try (second / "data.tmp").write("x")
      var setup = fixture.setup("hide=/docs:*.tmp")
      setup.substitutions.append(archive)
      try withMount(setup) { mount throws in
        try expectMissing(mount.point / "docs")
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "docs/readme").status() }
        #expect(try (mount.point / "data").names() == ["docs"])
        #expect(try (mount.point / "data/docs/n").readText() == "2")
        #expect(try mount.command("layers", "add", second).status == 0)
        try expectMissing(mount.point / "docs")
        try expectMissing(mount.point / "data.tmp")
      }
    }

    @Test("whiteouts hide what they did, also where everything matches", .timeLimit(.minutes(1)))
    func whiteouts() throws {
      let fixture = try Fixture()
      try (fixture.substitution / ".wh.plain.txt").write("")
      try withMount(fixture.setup("hide=.wh.*:link")) { mount throws in
        try expectMissing(mount.point / "plain.txt")
        try expectMissing(mount.point / "link")
      }
      try withMount(fixture.setup("hide=*")) { mount throws in
        #expect(try mount.point.names() == [])
        #expect((mount.point / ".routes").exists)
      }
    }

    @Test("patterns fold where case does not count", .timeLimit(.minutes(1)))
    func case_() throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Data").makeDirectory()
      try (fixture.main / "Data/ÄRGER.Bak").write("x")
      try (fixture.main / "Data/Readme.TXT").write("x")
      try (fixture.main / "kept").write("x")
      try withMount(fixture.setup("case=insensitive,hide=ä*.bak:DATA/readme.*")) { mount throws in
        #expect(try (mount.point / "Data").names() == [])
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "data/README.txt").status() }
        #expect((mount.point / "KEPT").exists)
      }
      try withMount(fixture.setup("hide=DATA/readme.*")) { mount throws in
        #expect(try (mount.point / "Data").names().count == 2)
      }
    }

    @Test("'diff' lists them in a kind of their own", .timeLimit(.minutes(1)))
    func diff() throws {
      let fixture = try fixture()
      try withMount(fixture.setup("hide=*.bak:art")) { mount throws in
        let text = try mount.command("diff").outputText
        #expect(text.contains("  excludes   b.bak\n") && text.contains("  excludes   art/\n"), "\(text)")
        #expect(text.contains(", 3 excluded"), "\(text)")
        #expect(!text.contains("art/x.psd"), "\(text)")
        let json = try mount.command("diff", "--json").outputText
        #expect(
          json.contains(
            #""path":"b.bak","kind":"file","verdict":"excluded","layer":"\#(fixture.substitution)""#))
        #expect(json.contains(#""excluded":3"#), "\(json)")
      }
    }

    @Test("they cannot be made through the mount", .timeLimit(.minutes(1)))
    func writing() throws {
      let fixture = try fixture()
      try withWritable("hide=*.bak:art/*.psd", fixture: fixture) { mount, _ throws in
        let point = mount.point
        try expectErrno(.notPermitted, "open") { try (point / "new.bak").write("x") }
        try expectErrno(.notPermitted, "over a hidden one") { try (point / "b.bak").write("x") }
        try expectErrno(.notPermitted, "mkdir") { try (point / "new.bak").makeDirectory() }
        try expectErrno(.notPermitted, "symlink") { try (point / "new.bak").makeLink(to: "x") }
        try expectErrno(.notPermitted, "link") {
          try (point / "new.bak").makeHardLink(of: point / "plain.txt")
        }
        try expectErrno(.notPermitted, "rename") { try (point / "plain.txt").rename(to: point / "p.bak") }
        try expectErrno(.notPermitted, "path") { try (point / "art/n.psd").write("x") }
        try (point / "folder/n.psd").write("x")
        // Other names would be hidden in it.
        try (point / "paint").makeDirectory()
        try (point / "paint/x.psd").write("x")
        try (point / "painted").makeDirectory()
        try (point / "painted").rename(to: point / "colours")
        try Command("rm", "-r", (point / "art/deep").text).check()
        #expect(try (point / "art").names() == [])
        // The upper layer's own are not removed unseen.
        try expectErrno(.directoryNotEmpty) { try (point / "art").removeDirectory() }
        try (fixture.substitution / "art/x.psd").remove()
        try mount.barrier()
        try (point / "art").removeDirectory()
        #expect((fixture.substitution / "art").isWhiteout)
        try expectErrno(.crossDeviceLink, "a folder to another place") {
          try (point / "paint").rename(to: point / "art")
        }
      }
      #expect((fixture.main / "art/x.psd").exists)
    }

    @Test("merged tables and resources are found without them", .timeLimit(.minutes(1)))
    func otherFeatures() throws {
      let fixture = try Fixture(isFilled: false)
      for layer in [fixture.main, fixture.substitution] {
        try (layer / "Main.strings").write("\"\(layer.lastComponent)\" = \"x\";\n")
        try (layer / "Other.strings").write("\"\(layer.lastComponent)\" = \"x\";\n")
        try (layer / "logo.png").write("x")
      }
      try withMount(fixture.setup("strings=merge,hide=Main.*:logo.png")) { mount throws in
        try expectMissing(mount.point / "Main.strings")
        let merged = try (mount.point / "Other.strings").readText()
        #expect(merged.contains("main") && merged.contains("substitution"))
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "rsrc:/logo.png").status() }
        #expect((mount.point / "rsrc:/Other.strings").exists)
      }
    }

    @Test("programs that watch the mount learn nothing of them", .timeLimit(.minutes(1)))
    func events() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("hide=*.bak,announce=on")) { mount throws in
        let watcher = try MountWatcher(mount.point, [""])
        try (fixture.substitution / "first.bak").write("x")
        try mount.barrier()
        try (fixture.substitution / "first.bak").remove()
        try (fixture.main / "replaced.txt").rename(to: fixture.main / "replaced.bak")
        try (fixture.substitution / "last").write("x")
        #expect(try watcher.receives(.created, "last"))
        #expect(!watcher.events.contains { $0.name.text.hasSuffix(".bak") }, "\(watcher.events)")
      }
    }

    @Test("'apply' leaves them in the top layer", .timeLimit(.minutes(1)))
    func apply() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "folder/both.txt.mohidden").write("x")
      try withMount(fixture.setup("hide=*.mohidden")) { mount throws in
        let former = try Apply.snapshot(mount.point)
        #expect(try Apply.run(mount).status == 0)
        #expect(Apply.differences(former, try Apply.snapshot(mount.point)) == [])
        #expect(try (fixture.substitution / "folder").names() == ["both.txt.mohidden"])
        #expect(try (fixture.main / "folder").names() == ["added.txt", "both.txt", "inner.txt"])
      }
    }

    @Test("a pattern that cannot be used is named, with the remedy", .timeLimit(.minutes(1)))
    func faults() throws {
      let fixture = try Fixture()
      let faults: [(ByteString, String)] = [
        ("hide", "expected hide=GLOB"), ("hide=", "expected hide=GLOB"), ("hide=a::b", "expected hide=GLOB"),
        ("hide=a[b", #"write '\['"#), ("hide=docs/", "ends with a slash"), ("hide=a//b", "two in a row"),
        ("hide=../a", "contains '.' or '..'"), ("hide=docs/**", "nothing follows '**'"),
      ]
      for (option, text) in faults {
        let mount = try DaemonMount(fixture.setup(option))
        #expect(mount.outcome.status == 2, "\(option)")
        #expect(mount.outcome.errorText.contains(text), "\(mount.outcome.errorText)")
        #expect(mount.outcome.errorText.contains("'\(option.text)'"), "\(mount.outcome.errorText)")
      }
      try (fixture.main / "a:b").write("x")
      try withMount(fixture.setup(#"hide=a\:b"#)) { mount throws in try expectMissing(mount.point / "a:b") }
    }
  }
}
