import Posix
import TestSupport
import Testing

/// Shells that stand in folders of a mount that caches, while these gain and lose parts.
extension MountTests {
  @Suite struct StandingTests {
    @Test("a folder gains a substitution part", .timeLimit(.minutes(1)), arguments: ["folder", "only/deep"])
    func gaining(path: String) throws {
      let fixture = try Fixture()
      let path = ByteString(path)
      if path == "folder" { try (fixture.substitution / path).rename(to: fixture.folder / "aside") }
      let old = path == "folder" ? "both.txt\ninner.txt" : "file.txt"
      try expectSeen(fixture, from: path, names: "\(old)\nnew.txt") {
        try (fixture.substitution / path).makeDirectories()
        try (fixture.substitution / path / "new.txt").write("new\n")
      }
    }

    @Test("a folder gains a whole tree moved in", .timeLimit(.minutes(1)))
    func gainingTree() throws {
      let fixture = try Fixture()
      let tree = try fixture.folder.folder("tree")
      try (tree / "deep").makeDirectory()
      try (tree / "deep/new.txt").write("new\n")
      try expectSeen(fixture, from: "only/deep", names: "file.txt\nnew.txt") {
        try tree.rename(to: fixture.substitution / "only")
      }
    }

    @Test("a folder loses a part", .timeLimit(.minutes(1)), arguments: ["moved", "removed", "replaced"])
    func losing(manner: String) throws {
      let fixture = try Fixture()
      let part = fixture.substitution / "folder"
      try expectSeen(fixture, from: "folder", names: "both.txt\ninner.txt\nnew.txt") {
        try (fixture.main / "folder/new.txt").write("new\n")
        switch manner {
        case "moved": try part.rename(to: fixture.folder / "aside")
        case "removed": RemovedTreeInLayer.remove(part)
        default:
          let other = try fixture.folder.folder("other")
          try other.exchange(with: part)
        }
      }
    }

    @Test("a folder loses a part whose mark hid a file", .timeLimit(.minutes(1)))
    func uncovering() throws {
      let fixture = try Fixture()
      let part = fixture.substitution / "folder"
      try (fixture.main / "folder/new.txt").write("new\n")
      try (part / ".wh.new.txt").write("")
      try expectSeen(fixture, from: "folder", names: "both.txt\ninner.txt\nnew.txt") {
        try part.rename(to: fixture.folder / "aside")
      }
    }

    /// A shell that has looked around in the folder says after the change where it stands, reads the new file,
    /// lists, and reads a file that is reached by `..`.
    private func expectSeen(
      _ fixture: Fixture, from path: ByteString, names: String, location: SourceLocation = #_sourceLocation,
      after change: () throws -> Void
    ) throws {
      let up = path == "folder" ? ".." : "../.."
      // Known to the kernel: what the folder holds, and that the new file is missing.
      let outcome = try withStandingShell(
        fixture, in: path, first: "ls > /dev/null && ! cat new.txt",
        then: "exec 2>&1; pwd -P && cat new.txt && ls && cat \(up)/plain.txt", location: location,
        change: change)
      let expected = "\(fixture.point.text)/\(path.text)\nnew\n\(names)\nmain's plain\n"
      #expect(outcome.outputText == expected, sourceLocation: location)
    }
  }
}
