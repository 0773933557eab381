import Posix
import TestSupport
import Testing

/// Shells whose working directory gains and loses parts.
extension MountTests {
  @Suite struct WorkingDirectoryTests {
    @Test(
      "a folder gains a part in the substitution", .timeLimit(.minutes(1)),
      arguments: ["folder", "only/deep"])
    func gainedPart(path: String) throws {
      let fixture = try Fixture()
      let path = ByteString(path)
      if path == "folder" { try (fixture.substitution / path).rename(to: fixture.folder / "aside") }
      let old = path == "folder" ? "both.txt\ninner.txt" : "file.txt"
      try expectSeen(fixture, from: path, names: "\(old)\nnew.txt") {
        try (fixture.substitution / path).makeDirectories()
        try (fixture.substitution / path / "new.txt").write("new\n")
      }
    }

    @Test("a folder gains a part in a tree that is moved in", .timeLimit(.minutes(1)))
    func gainedTree() throws {
      let fixture = try Fixture()
      let tree = try fixture.folder.folder("tree")
      try (tree / "deep").makeDirectory()
      try (tree / "deep/new.txt").write("new\n")
      try expectSeen(fixture, from: "only/deep", names: "file.txt\nnew.txt") {
        try tree.rename(to: fixture.substitution / "only")
      }
    }

    @Test("a folder loses a part", .timeLimit(.minutes(1)), arguments: ["moved", "removed", "replaced"])
    func lostPart(change: String) throws {
      let fixture = try Fixture()
      let part = fixture.substitution / "folder"
      try expectSeen(fixture, from: "folder", names: "both.txt\ninner.txt\nnew.txt") {
        try (fixture.main / "folder/new.txt").write("new\n")
        switch change {
        case "moved": try part.rename(to: fixture.folder / "aside")
        case "removed": (part).removeTree()
        default:
          let other = try fixture.folder.folder("other")
          try other.exchange(with: part)
        }
      }
    }

    @Test("a folder loses a part with a whiteout", .timeLimit(.minutes(1)))
    func lostWhiteout() throws {
      let fixture = try Fixture()
      let part = fixture.substitution / "folder"
      try (fixture.main / "folder/new.txt").write("new\n")
      try (part / ".wh.new.txt").write("")
      try expectSeen(fixture, from: "folder", names: "both.txt\ninner.txt\nnew.txt") {
        try part.rename(to: fixture.folder / "aside")
      }
    }

    /// After the change, a shell in the folder prints its path, reads the new file, lists the folder and reads a
    /// file reached by `..`.
    private func expectSeen(
      _ fixture: Fixture, from path: ByteString, names: String, location: SourceLocation = #_sourceLocation,
      after change: () throws -> Void
    ) throws {
      let up = path == "folder" ? ".." : "../.."
      // The kernel has cached the folder's content and a negative entry for the new file.
      let outcome = try withCwdShell(
        fixture, in: path, first: "ls > /dev/null && ! cat new.txt",
        then: "exec 2>&1; pwd -P && cat new.txt && ls && cat \(up)/plain.txt", location: location,
        change: change)
      let expected = "\(fixture.point.text)/\(path.text)\nnew\n\(names)\nmain's plain\n"
      #expect(outcome.outputText == expected, sourceLocation: location)
    }
  }
}
