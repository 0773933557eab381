import Posix
import TestSupport
import Testing

/// Layers that the kernel's overlayfs wrote with `metacopy=on,redirect_dir=on`, and whiteouts that are attributes.
extension MountTests {
  @Suite struct OverlayLayerTests {
    /// Runs a script in an overlayfs with the substitution above MAIN.
    private func withOverlay(_ fixture: Fixture, _ script: String) throws {
      let (work, point) = (try fixture.folder.folder("work"), try fixture.folder.folder("overlay"))
      let options =
        "metacopy=on,redirect_dir=on,index=off,lowerdir=\(fixture.main),upperdir=\(fixture.substitution),workdir=\(work)"
      try Command("mount", "-t", "overlay", "-o", options, "overlay", point.text).check()
      defer { MountTable.abandon(point, isFuse: false) }
      try Command.shell("set -e; cd \"$1\"\n\(script)", point).check()
    }

    private func fixture() throws -> Fixture {
      let fixture = try Fixture(isFilled: false)
      for path in ["big", "folder/small", "folder/moved", "tree/inner", "kept/changed", "kept/gone"]
        as [ByteString]
      {
        try (fixture.main / path).parent.makeDirectories()
        try (fixture.main / path).write("the content of \(path)\n")
      }
      try (fixture.main / "big").write([UInt8](repeating: 65, count: 100_000))
      try withOverlay(
        fixture,
        """
        chmod 600 big folder/small
        mv folder/moved renamed; chmod 600 renamed
        mv tree other
        chmod 700 kept; echo more >> kept/changed; rm kept/gone; echo new > kept/new
        """)
      return fixture
    }

    @Test(
      "what overlayfs keeps in another layer is refused, and never becomes NULs", .timeLimit(.minutes(1)),
      arguments: ["rw", "writable", "case=insensitive"])
    func references(option: String) throws {
      let fixture = try fixture()
      let references = ["big", "folder/small", "renamed", "other"] as [ByteString]
      try withMount(fixture.setup(ByteString(option))) { mount in
        #expect(try mount.point.names() == ["big", "folder", "kept", "other", "renamed"])
        #expect(try (mount.point / "folder").names() == ["small"])
        for _ in 0..<2 {
          for path in references {
            try expectErrno(.ioError, "\(path)") { _ = try (mount.point / path).status() }
            try expectErrno(.ioError, "\(path)") { _ = try (mount.point / path).read() }
            let script = #"echo x >> "$1"; : > "$1"; chmod 644 "$1"; mv "$1" "$1.new"; rm -r "$1""#
            #expect(try Command.shell(script, mount.point / path).run().status != 0)
          }
        }
        #expect(try (mount.point / "kept").names() == ["changed", "new"])
        #expect(try (mount.point / "kept/changed").readText() == "the content of kept/changed\nmore\n")
        let status = try mount.command("status").outputText
        #expect(status.contains("4 entries, such as big, cannot be read: overlayfs"), "\(status)")
        // Once overlayfs has copied the content, too, it is seen.
        try withOverlay(fixture, "echo end >> folder/small")
        #expect(
          eventually(within: 10) {
            (try? (mount.point / "folder/small").readText()) == "the content of folder/small\nend\n"
          })
      }
      try withOverlay(
        fixture,
        """
        [ "$(tr -d A < big | wc -c) $(wc -c < big)" = "0 100000" ]
        [ "$(cat renamed)" = "the content of folder/moved" ]
        [ "$(cat other/inner)" = "the content of tree/inner" ]
        """)
    }

    @Test(
      "an empty file with the attribute of a whiteout is one where the directory says so",
      .timeLimit(.minutes(1)),
      arguments: ["trusted", "user"])
    func attributeWhiteouts(space: String) throws {
      let fixture = try Fixture()
      try (fixture.substitution / "plain.txt").write("")
      for path in ["folder/inner.txt", "folder/both.txt", "folder/empty"] as [ByteString] {
        try (fixture.substitution / path).write("")
      }
      let whiteout = ByteString("\(space).overlay.whiteout")
      for path in ["plain.txt", "folder/inner.txt", "folder/both.txt"] as [ByteString] {
        try (fixture.substitution / path).setAttribute(whiteout, [])
      }
      try (fixture.substitution / "folder/added.txt").setAttribute(whiteout, Array("y".utf8))
      try (fixture.substitution / "folder").setAttribute(
        ByteString("\(space).overlay.opaque"), Array("x".utf8))
      try withMount(fixture.setup) { mount throws in
        for _ in 0..<2 {
          #expect(try (mount.point / "folder").names() == ["added.txt", "empty"])
          #expect(!(mount.point / "folder/inner.txt").exists && !(mount.point / "folder/both.txt").exists)
          #expect(try (mount.point / "folder/added.txt").readText() == "substitution's added\n", "not empty")
          #expect(try (mount.point / "plain.txt").readText() == "", "the root does not say so")
        }
        #expect(try mount.command("diff").outputText.contains("folder/inner.txt"))
      }
    }

    @Test("a metacopy of an overlayfs for users is refused, too", .timeLimit(.minutes(1)))
    func userAttributes() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "folder").setAttribute("user.overlay.impure", Array("y".utf8))
      try (fixture.substitution / "folder/added.txt").setAttribute("user.overlay.metacopy", [])
      try withMount(fixture.setup) { mount in
        try expectErrno(.ioError) { _ = try (mount.point / "folder/added.txt").read() }
        #expect(try (mount.point / "folder/both.txt").readText() == "substitution's both\n")
        #expect(try (mount.point / "folder").names().contains("added.txt"))
      }
    }
  }
}
