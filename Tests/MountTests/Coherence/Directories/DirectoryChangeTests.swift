import Posix
import TestSupport
import Testing

/// Directories that gain and lose parts while they are in use.
extension MountTests {
  @Suite struct DirectoryChangeTests {
    @Test("a working directory gains a part in the substitution", .timeLimit(.minutes(1)))
    func workingDirectory() throws {
      let fixture = try Fixture()
      let outcome = try withCwdShell(
        fixture, in: "only/deep", first: "cat file.txt",
        then: "cat file.txt new.txt; ls; pwd -P; cat ../../plain.txt"
      ) {
        try (fixture.substitution / "only/deep").makeDirectories()
        try (fixture.substitution / "only/deep/new.txt").write("new\n")
        try (fixture.substitution / "only/deep/file.txt").write("an override\n")
      }
      #expect(
        outcome.outputText
          == "deep\nan override\nnew\nfile.txt\nnew.txt\n\(fixture.point.text)/only/deep\nmain's plain\n")
      #expect(outcome.errorText == "")
    }

    @Test("a working directory loses a part", .timeLimit(.minutes(1)))
    func lostPart() throws {
      let fixture = try Fixture()
      let outcome = try withCwdShell(
        fixture, in: "folder", first: "cat both.txt", then: "cat both.txt; ls"
      ) {
        try (fixture.substitution / "folder").rename(to: fixture.folder / "away")
      }
      #expect(outcome.outputText == "substitution's both\nmain's both\nboth.txt\ninner.txt\n")
      #expect(outcome.errorText == "")
    }

    @Test("a tree that is moved into a layer appears whole", .timeLimit(.minutes(1)))
    func movedTree() throws {
      let fixture = try Fixture()
      let tree = try fixture.folder.folder("tree")
      try (tree / "a/b/c").makeDirectories()
      try (tree / "a/b/c/file").write("moved in")
      try withMount(fixture.setup) { mount in
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "tree/a").status() }
        for layer in [fixture.substitution, fixture.main] {
          try tree.rename(to: layer / "tree")
          try mount.barrier()
          #expect(try (mount.point / "tree/a/b/c/file").readText() == "moved in")
          #expect(try mount.names() == (Fixture.rootNames + ["tree"]).sorted())
          try (layer / "tree").rename(to: tree)
          try mount.barrier()
          try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "tree/a/b/c/file").status() }
        }
      }
    }

    @Test("a directory keeps its inode number when it gains a part", .timeLimit(.minutes(1)))
    func stableInodeNumber() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let before = try (mount.point / "only/deep").status().inode
        try (fixture.substitution / "only/deep").makeDirectories()
        try mount.barrier()
        #expect(try (mount.point / "only/deep").status().inode == before)
        #expect(try (mount.point / "only").list().map(\.inode) == [before])
        try (fixture.substitution / "only/deep").removeDirectory()
        try (fixture.substitution / "only").removeDirectory()
        try mount.barrier()
        #expect(try (mount.point / "only/deep").status().inode == before)
      }
    }

    @Test("permanent names are listed exactly once while others appear and vanish", .timeLimit(.minutes(1)))
    func listingDuringChanges() throws {
      let fixture = try Fixture(isFilled: false)
      let permanent = (0..<3000).map { ByteString("staying-\($0)") }
      for (index, name) in permanent.enumerated() {
        try ((index % 2 == 0 ? fixture.main : fixture.substitution) / name).write("")
      }
      try withMount(fixture.setup) { mount in
        let changer = try Child(
          .shell(
            """
            cd "$1" && n=0 && while [ -e "$1" ]; do n=$((n+1)); : > "passing-$n"; rm -f "passing-$((n-50))"; done
            """, fixture.substitution))
        defer { try? changer.kill() }
        for _ in 0..<30 {
          let listed = try mount.point.list().map(\.name).filter { $0.hasPrefix("staying-") }
          #expect(listed.count == permanent.count)
          #expect(Set(listed).count == permanent.count)
        }
      }
    }
  }
}
