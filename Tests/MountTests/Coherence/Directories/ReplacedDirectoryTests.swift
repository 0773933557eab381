import Posix
import TestSupport
import Testing

/// Directories whose name another directory of the same layer takes, while a bind mount or a program stays in them.
extension MountTests {
  @Suite struct ReplacedDirectoryTests {
    /// Mounts, binds a directory of the mount elsewhere and calls the body with the place.
    private func withBind(
      _ fixture: Fixture, _ options: [ByteString], of path: ByteString = "only/deep",
      _ body: (Mount, ByteString) throws -> Void
    ) throws {
      var setup = fixture.setup
      setup.options = options
      try withMount(setup) { mount in
        let bind = try fixture.folder.folder("bind")
        try Command("mount", "--bind", (mount.point / path).text, bind.text).check()
        defer { _ = try? Command("umount", "-l", bind.text).run() }
        try body(mount, bind)
      }
    }

    @Test(
      "a bind mount stays on a directory that is renamed and made anew", .timeLimit(.minutes(1)),
      arguments: [[], ["writable"], ["cache=coherent,announce=off"]] as [[ByteString]])
    func renamed(options: [ByteString]) throws {
      let fixture = try Fixture()
      try (fixture.main / "only/deep/below/it").makeDirectories()
      try withBind(fixture, options) { mount, bind in
        #expect(try (bind / "file.txt").readText() == "deep\n")
        _ = try (bind / "below/it").status()
        let path = fixture.main / "only/deep"
        let renamed = fixture.main / "only/former"
        try path.rename(to: renamed)
        try mount.barrier()
        #expect(try bind.names() == ["below", "file.txt"])
        try (path / "below/it").makeDirectories()
        try (path / "file.txt").write("another\n")
        try mount.barrier()
        #expect(try (bind / "file.txt").readText() == "deep\n")
        #expect(try (mount.point / "only/deep/file.txt").readText() == "another\n")

        // Unknown in the mount by its new name, and then known.
        for round in 0..<2 {
          try (renamed / "file.txt").write("edited \(round)\n")
          try (renamed / ByteString("new\(round)")).write("")
          try mount.barrier()
          #expect(try (bind / "file.txt").readText() == "edited \(round)\n")
          #expect(try bind.names().contains(ByteString("new\(round)")))
          #expect(try (mount.point / "only/former/file.txt").readText() == "edited \(round)\n")
        }
        for path: ByteString in [".", "below", "below/it"] {
          let former = try (bind / path).status().inode
          #expect(try (mount.point / "only/former" / path).status().inode == former)
          #expect(try (mount.point / "only/deep" / path).status().inode != former)
        }
      }
    }

    @Test("a working directory follows one that is renamed", .timeLimit(.minutes(1)))
    func workingDirectory() throws {
      let fixture = try Fixture()
      let outcome = try withCwdShell(
        fixture, in: "only/deep", first: "cat file.txt > /dev/null",
        then: "exec 2>&1; cat file.txt; cat ../former/file.txt; /bin/pwd -P; cat ../deep/file.txt"
      ) {
        try (fixture.main / "only/deep").rename(to: fixture.main / "only/former")
        try (fixture.main / "only/deep").makeDirectory()
        try (fixture.main / "only/deep/file.txt").write("another\n")
      }
      #expect(outcome.outputText == "deep\ndeep\n\(fixture.point.text)/only/former\nanother\n")
    }

    @Test("a directory that is deleted and made anew is another one", .timeLimit(.minutes(1)))
    func deleted() throws {
      let fixture = try Fixture()
      try withBind(fixture, []) { mount, bind in
        (fixture.main / "only/deep").removeTree()
        try mount.barrier()
        try (fixture.main / "only/deep").makeDirectory()
        try (fixture.main / "only/deep/new.txt").write("new\n")
        try mount.barrier()
        #expect((try? (bind / "new.txt").status()) == nil)
        #expect(try (mount.point / "only/deep/new.txt").readText() == "new\n")
      }
    }

    @Test("a bind mount shows what a new stack of layers has at its path", .timeLimit(.minutes(1)))
    func newStack() throws {
      let fixture = try Fixture()
      let other = try fixture.folder.folder("other")
      try (other / "mod").makeDirectory()
      try (other / "mod/file.txt").write("other\n")
      try (fixture.substitution / "mod").makeDirectory()
      try (fixture.substitution / "mod/file.txt").write("first\n")
      try withBind(fixture, [], of: "mod") { mount, bind in
        #expect(try (bind / "file.txt").readText() == "first\n")
        try Command([Binary.underTest(), "layers", mount.point, "set", other]).check()
        #expect(try (bind / "file.txt").readText() == "other\n")
      }
    }

    @Test("a bind mount shows what a layer's new root has at its path", .timeLimit(.minutes(1)))
    func newRoot() throws {
      let fixture = try Fixture()
      let other = try fixture.folder.folder("other")
      try (other / "mod").makeDirectory()
      try (other / "mod/file.txt").write("other\n")
      try (fixture.substitution / "mod").makeDirectory()
      try (fixture.substitution / "mod/file.txt").write("first\n")
      try withBind(fixture, [], of: "mod") { mount, bind in
        #expect(try (bind / "file.txt").readText() == "first\n")
        try other.exchange(with: fixture.substitution)
        try mount.barrier()
        #expect(try (bind / "file.txt").readText() == "other\n")
      }
    }

    @Test(
      "nothing is made in a renamed directory of a layer below, where it would be lost",
      .timeLimit(.minutes(1)))
    func noLostEntries() throws {
      let fixture = try Fixture()
      try (fixture.main / "only/deep/below").makeDirectory()
      try withBind(fixture, ["writable"]) { mount, bind in
        _ = try (bind / "below").status()
        try (fixture.main / "only/deep").rename(to: fixture.folder / "aside")
        try mount.barrier()
        #expect(try (bind / "file.txt").readText() == "deep\n")
        try expectErrno(.noSuchFileOrDirectory) { try (bind / "below/new.txt").write("lost") }
        try expectErrno(.noSuchFileOrDirectory) { try (bind / "below/folder").makeDirectory() }
        try expectErrno(.noSuchFileOrDirectory) { try (bind / "new.txt").write("lost") }
        try expectErrno(.noSuchFileOrDirectory) { try (bind / "folder").makeDirectory() }
      }
    }

    @Test("a renamed directory of the upper layer takes what is made in it", .timeLimit(.minutes(1)))
    func upperDirectory() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "mod").makeDirectory()
      try withBind(fixture, ["writable"], of: "mod") { mount, bind in
        try (fixture.substitution / "mod").rename(to: fixture.substitution / "former")
        try mount.barrier()
        try (bind / "new.txt").write("new\n")
        #expect(try (fixture.substitution / "former/new.txt").readText() == "new\n")
        #expect(try (mount.point / "former/new.txt").readText() == "new\n")
      }
    }
  }
}
