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
      try withShell(fixture, path) { mount in
        try (fixture.substitution / path).makeDirectories()
        try (fixture.substitution / path / "new.txt").write("new\n")
      } expecting: { point in
        let old = path == "folder" ? "both.txt\ninner.txt" : "file.txt"
        let names = (old.split(separator: "\n") + ["new.txt"]).sorted().joined(separator: "\n")
        return "\(point.text)/\(path.text)\nnew\n\(names)\nmain's plain\n"
      }
    }

    @Test("a folder gains a whole tree moved in", .timeLimit(.minutes(1)))
    func gainingTree() throws {
      let fixture = try Fixture()
      let tree = try fixture.folder.folder("tree")
      try (tree / "deep").makeDirectory()
      try (tree / "deep/new.txt").write("new\n")
      try withShell(fixture, "only/deep") { _ in
        try tree.rename(to: fixture.substitution / "only")
      } expecting: {
        "\($0.text)/only/deep\nnew\nfile.txt\nnew.txt\nmain's plain\n"
      }
    }

    @Test("a folder loses a part", .timeLimit(.minutes(1)), arguments: ["moved", "removed", "replaced"])
    func losing(manner: String) throws {
      let fixture = try Fixture()
      let part = fixture.substitution / "folder"
      try withShell(fixture, "folder") { _ in
        try (fixture.main / "folder/new.txt").write("new\n")
        switch manner {
        case "moved": try part.rename(to: fixture.folder / "aside")
        case "removed": RemovedTreeInLayer.remove(part)
        default:
          let other = try fixture.folder.folder("other")
          try other.exchange(with: part)
        }
      } expecting: {
        "\($0.text)/folder\nnew\nboth.txt\ninner.txt\nnew.txt\nmain's plain\n"
      }
    }

    /// A shell goes into the folder, looks around and waits; after the change it says where it stands, lists,
    /// reads the new file and one reached by `..`.
    private func withShell(
      _ fixture: Fixture, _ path: ByteString, change: (Mount) throws -> Void,
      expecting: (ByteString) -> String
    ) throws {
      let (go, ready) = (fixture.folder / "go", fixture.folder / "ready")
      try withMount(fixture.setup) { mount in
        // Known to the kernel: that the new file is missing, and what the folder holds.
        let script = #"""
          cd "$1" && ls > "$3" && cat new.txt > /dev/null
          : > "$4" && while [[ ! -e $2 ]]; do sleep 0.02; done
          exec 2>&1
          pwd -P && cat new.txt && ls && cat "$5/plain.txt"
          """#
        let up = path == "folder" ? ".." : "../.." as ByteString
        let shell = try Child(
          .shell(script, mount.point / path, go, fixture.folder / "listing", ready, up))
        #expect(eventually(within: 20) { ready.exists })
        try change(mount)
        try mount.barrier()
        try go.write("")
        let outcome = try shell.wait(timeout: 20)
        #expect(outcome.outputText == expecting(mount.point))
      }
    }
  }
}
