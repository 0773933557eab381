import Glibc
import Posix
import TestSupport
import Testing

/// Mounts as fuse-overlayfs makes them.
extension MountTests {
  @Suite struct OverlayMountTests {
    private let folder: TemporaryFolder
    private let (lower, base, upper, work, point):
      (ByteString, ByteString, ByteString, ByteString, ByteString)

    init() throws {
      folder = try TemporaryFolder()
      lower = try folder.folder("lower:1")
      base = try folder.folder("base")
      (upper, work) = (try folder.folder("upper"), try folder.folder("work"))
      point = try folder.folder("merged")
      try (base / "both").write("base's both\n")
      try (lower / "both").write("lower's both\n")
      try (base / "gone").write("base's gone\n")
      try (base / "folder").makeDirectory()
      try (base / "folder/file").write("base's file\n")
    }

    private var layers: ByteString { "lowerdir=" + MountSetup.escaped(lower) + ":" + base }
    private var changes: ByteString { ",upperdir=" + upper + ",workdir=" + work }

    /// Mounts by a link to the program that is named as fuse-overlayfs.
    private func withOverlay(_ options: ByteString, _ body: () throws -> Void) throws {
      let link = folder.path / "fuse-overlayfs"
      if !link.exists { try link.makeLink(to: try Binary.underTest()) }
      let mount = try DaemonMount(Command([link, "-o", options, point]), point: point)
      #expect(mount.outcome.status == 0, "\(mount.outcome.errorText)")
      #expect(mount.outcome.errors.isEmpty && mount.outcome.output.isEmpty)
      try body()
      try Command([Binary.underTest(), "unmount", point]).check()
      #expect(try mount.isGone())
    }

    @Test(
      "layers are merged, the first lower one above the next, and take no changes", .timeLimit(.minutes(1)))
    func readOnly() throws {
      try withOverlay(layers) {
        #expect(try point.names() == ["both", "folder", "gone"])
        #expect(try (point / "both").readText() == "lower's both\n")
        try expectErrno(.readOnlyFileSystem) { try (point / "new").write("") }
        try expectErrno(.readOnlyFileSystem) { try (point / "gone").remove() }
      }
    }

    @Test("changes go to the upper directory alone, as overlayfs has them", .timeLimit(.minutes(1)))
    func changed() throws {
      try withOverlay(layers + changes + ",,volatile") {
        try (point / "new").write("new\n")
        try (point / "gone").remove()
        try (point / "both").write("changed\n")
        try Command(["rm", "-r", point / "folder"]).check()
        try (point / "folder").makeDirectory()
        try Command(["chown", "5:6", point / "new"]).check()
        #expect(try point.names() == ["both", "folder", "new"])
        #expect(try upper.names() == ["both", "folder", "gone", "new"])
        #expect((upper / "gone").isWhiteout)
        let mark = try (upper / "folder").attribute("trusted.overlay.opaque")
        #expect(mark == Array("y".utf8) && !(point / "folder/file").exists)
        let status = try (upper / "new").status()
        #expect(status.owner == 5 && status.group == 6)
        #expect(try base.names() == ["both", "folder", "gone"])
      }
      #expect(try upper.names() == ["both", "folder", "gone", "new"])
      #expect(try work.names() == [])
      try withOverlay(layers + changes) { () throws in
        #expect(try point.names() == ["both", "folder", "new"])
      }
    }

    @Test("the mount has no names and attributes of its own", .timeLimit(.minutes(1)))
    func nothingAdded() throws {
      try (base / "text.html").write("<p>")
      try (base / "both").setAttribute("user.bundlefs.layer", Array("kept".utf8))
      try (base / "folder").setAttribute("user.fuseoverlayfs.origin", Array("x".utf8))
      try withOverlay(layers + changes) {
        for name in [".routes", "rsrc:", "rsrc:/both"] as [ByteString] {
          #expect(!(point / name).exists, "\(name)")
        }
        let names: [ByteString] = [
          "user.bundlefs.layer", "user.bundlefs.path", "user.mime_type", "user.bundlefs.version",
        ]
        for name in names {
          for file in ["text.html", ""] as [ByteString] {
            try expectErrno(.noData, "\(name)") { _ = try (point / file).attribute(name) }
          }
        }
        #expect(try (point / "folder").attributeNames() == [])
        for name in [".routes", "rsrc:"] as [ByteString] { try (point / name).write("own\n") }
        #expect(try (point / ".routes").readText() == "own\n")
        #expect(try (upper / "rsrc:").readText() == "own\n")
      }
    }

    @Test("opaque directories of fuse-overlayfs without privileges are opaque", .timeLimit(.minutes(1)))
    func opaque() throws {
      try (lower / "folder").makeDirectory()
      try (lower / "folder").setAttribute("user.fuseoverlayfs.opaque", Array("y".utf8))
      try withOverlay(layers) { () throws in #expect(try (point / "folder").names() == []) }
    }

    @Test("set-user-ID programs and other users' access work if root mounts", .timeLimit(.minutes(1)))
    func privileges() throws {
      let program = base / "id"
      try Command(["cp", "/usr/bin/id", program]).check()
      try program.setMode(0o4755)
      try folder.path.setMode(0o755)
      try withOverlay(layers + changes) {
        let outcome = try Command([point / "id", "-u"]).asUser(UnprivilegedTests.nobody).check()
        #expect(outcome.outputText == "0\n")
        // A container's user may own the root.
        try Command(["chown", "1000:1000", point]).check()
      }
      try withOverlay(layers + changes) { () throws in #expect(try point.status().owner == 1000) }
    }

    @Test("the work directory must be on the upper one's mount, and apart from it", .timeLimit(.minutes(1)))
    func workDirectory() throws {
      let inner = upper / "inner"
      try inner.makeDirectory()
      let cases: [(ByteString, String)] = [
        (inner, "or lies in it"), ("/dev", "on another mount"), ("/dev/shm", "on another mount"),
      ]
      for (directory, reason) in cases {
        let outcome = try Command([
          try Binary.underTest(), "-o", layers + ",upperdir=" + upper + ",workdir=" + directory, point,
        ]).run()
        #expect(outcome.status == 1 && outcome.errorText.contains(reason), "\(outcome.errorText)")
      }
    }

    @Test("the mount goes on when its worker dies, and with another program", .timeLimit(.minutes(1)))
    func survival() throws {
      try withOverlay(layers + changes) {
        let former = try #require(
          DaemonMount.processes(serving: point).first { Mount.worker(of: $0) != $0 }.map {
            Mount.worker(of: $0)
          })
        kill(former, SIGKILL)
        try (point / "after").write("after\n")
        #expect(try (upper / "after").readText() == "after\n")
        try Command([Binary.underTest(), "upgrade", point]).check()
        try (point / "gone").remove()
        try (point / "folder/file").write("later\n")
        #expect((upper / "gone").isWhiteout && !(point / ".routes").exists)
        #expect(try !upper.names().contains(".wh..wh.bundlefs-work"))
        #expect(try work.names() == [".wh..wh.bundlefs-work"])
      }
      #expect(try work.names() == [])
    }
  }
}
