import Posix
import TestSupport
import Testing

/// Programs that copy, compare, record or remove all that a mount lists meet the bundle's entries and nothing else.
extension MountTests {
  @Suite struct CopyingTests {
    @Test("cp -r, diff -r, find and tar see the layers' entries only", .timeLimit(.minutes(1)))
    func copies() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let script = """
          set -e
          cp -r "$1/." "$2/by-cp"
          mkdir "$2/by-tar"; tar cC "$1" . | tar xC "$2/by-tar"
          for copy in by-cp by-tar; do diff -r --no-dereference "$1" "$2/$copy"; find "$2/$copy" -name '.r*'; done
          find "$1" -name '.r*' -o -name 'rsrc*'
          """
        let outcome = try Command.shell(script, mount.point, try fixture.folder.folder("out")).check(
          timeout: 30)
        #expect(outcome.outputText == "")
      }
    }

    @Test("git sees a clean work tree, and cleans nothing but its own", .timeLimit(.minutes(1)))
    func git() throws {
      let fixture = try Fixture()
      let script = """
        set -e
        export HOME="$1" GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
        git config --global --add safe.directory '*'
        cd "$2"
        [ -d .git ] || { git init -q; git add -A; git commit -qm all; }
        git status --short; git clean -fdx
        """
      try Command.shell(script, fixture.folder.path, fixture.main).check(timeout: 30)
      var setup = MountSetup(main: fixture.main, point: fixture.point)
      setup.options = [ByteString("writable=\(fixture.substitution)")]
      for name in try fixture.substitution.names() {
        try Command("rm", "-r", (fixture.substitution / name).text).check()
      }
      try withMount(setup) { mount in
        let outcome = try Command.shell(script, fixture.folder.path, mount.point).check(timeout: 30)
        #expect(outcome.outputText == "")
        try mount.writeControl("route Any s:A\n")
      }
    }

    @Test("rm -rf of all that the root lists succeeds", .timeLimit(.minutes(1)))
    func removal() throws {
      try withWritable { mount, fixture in
        try Command.shell(#"shopt -s dotglob; rm -r "$1"/* && ls -A "$1""#, mount.point).check(timeout: 30)
        #expect(try mount.point.names() == [])
        #expect(mount.controlFile.exists)
        try expectUntouchedMain(fixture)
      }
    }

    @Test(
      "copies have the attributes of the layers' files, and none of the mount's", .timeLimit(.minutes(1)),
      arguments: ["xattr=on", "xattr=listed"])
    func attributes(option: String) throws {
      let fixture = try Fixture()
      try (fixture.main / "plain.txt").setAttribute("user.comment", [1])
      try (fixture.main / "folder").setAttribute("user.hidden", [1])
      try (fixture.substitution / "folder").setAttribute("user.shown", [1])
      let own = ["user.bundlefs.layer", "user.bundlefs.path"] as [ByteString]
      let expected: [(ByteString, [ByteString], [ByteString])] = [
        ("plain.txt", ["user.comment"], own + ["user.mime_type"]),
        ("replaced.txt", [], own + ["user.mime_type"]), ("folder", ["user.shown"], own),
        ("", [], own + ["user.bundlefs.version"]),
      ]
      let lists = option == "xattr=listed"
      try withMount(fixture.setup(ByteString(option))) { mount in
        let out = try fixture.folder.folder("out")
        let script =
          #"cp -a "$1/." "$2/by-cp"; mkdir "$2/by-tar"; "#
          + #"tar c --xattrs -C "$1" . | tar x --xattrs --xattrs-include='*' -C "$2/by-tar""#
        try Command.shell(script, mount.point, out).check(timeout: 30)
        for (path, real, synthetic) in expected {
          let names = Set(real + (lists ? synthetic : []))
          for tree in [mount.point, out / "by-cp", out / "by-tar"] {
            #expect(try Set((tree / path).attributeNames()) == names, "\(tree / path)")
          }
          for name in real + synthetic {
            #expect(try !(mount.point / path).attribute(name).isEmpty, "\(name)")
          }
        }
      }
    }
  }
}
