import Posix
import TestSupport
import Testing

/// Changes in a layer are visible through the mount after a barrier.
extension MountTests {
  @Suite struct LayerChangeTests {
    @Test("files appear, change and vanish in both layers", .timeLimit(.minutes(1)))
    func files() throws {
      let fixture = try Fixture(isFilled: false)
      try withMount(fixture.setup) { mount in
        for layer in [fixture.main, fixture.substitution] {
          try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "file").status() }
          try (layer / "file").write("one")
          try mount.barrier()
          #expect(try (mount.point / "file").readText() == "one")
          #expect(try mount.names() == ["file"])
          try (layer / "file").write("the second")
          try mount.barrier()
          #expect(try (mount.point / "file").readText() == "the second")
          #expect(try (mount.point / "file").status().size == 10)
          try (layer / "file").replace("third")
          try mount.barrier()
          #expect(try (mount.point / "file").readText() == "third")
          try (layer / "file").setMode(0o640)
          try mount.barrier()
          #expect(try (mount.point / "file").status().permissions == 0o640)
          try (layer / "file").setModified(TimeSpec(seconds: 77, nanoseconds: 5))
          try mount.barrier()
          #expect(try (mount.point / "file").status().modified == TimeSpec(seconds: 77, nanoseconds: 5))
          try (layer / "file").rename(to: layer / "renamed")
          try mount.barrier()
          #expect(try mount.names() == ["renamed"])
          try (layer / "renamed").remove()
          try mount.barrier()
          #expect(try mount.names() == [])
          try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "renamed").status() }
        }
      }
    }

    @Test("an override appears and vanishes", .timeLimit(.minutes(1)))
    func overrides() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        for _ in 0..<20 {
          #expect(try (mount.point / "plain.txt").readText() == "main's plain\n")
          try (fixture.substitution / "plain.txt").write("an override")
          try mount.barrier()
          #expect(try (mount.point / "plain.txt").readText() == "an override")
          #expect(try (mount.point / "plain.txt").status().size == 11)
          try (fixture.substitution / "plain.txt").remove()
          try mount.barrier()
        }
        // Empty files override too.
        try (fixture.substitution / "plain.txt").write("")
        try mount.barrier()
        #expect(try (mount.point / "plain.txt").readText() == "")
      }
    }

    @Test("a file becomes a directory and the reverse", .timeLimit(.minutes(1)))
    func typeChanges() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        #expect(try (mount.point / "folder").names() == ["added.txt", "both.txt", "inner.txt"])
        try (fixture.substitution / "folder").rename(to: fixture.substitution / "aside")
        try mount.barrier()
        #expect(try (mount.point / "folder").names() == ["both.txt", "inner.txt"])
        try (fixture.substitution / "folder").write("now a file")
        try mount.barrier()
        #expect(try (mount.point / "folder").readText() == "now a file")
        try expectErrno(.notDirectory) { _ = try (mount.point / "folder" / "inner.txt").status() }
        try (fixture.substitution / "folder").remove()
        try mount.barrier()
        #expect(try (mount.point / "folder" / "inner.txt").readText() == "main's inner\n")
        try (fixture.substitution / "plain.txt").makeDirectory()
        try (fixture.substitution / "plain.txt" / "inside").write("x")
        try mount.barrier()
        #expect(try (mount.point / "plain.txt").names() == ["inside"])
        try (fixture.substitution / "plain.txt" / "inside").remove()
        try (fixture.substitution / "plain.txt").removeDirectory()
        try mount.barrier()
        #expect(try (mount.point / "plain.txt").readText() == "main's plain\n")
      }
    }

    @Test("whiteouts of both formats appear and vanish", .timeLimit(.minutes(1)))
    func whiteouts() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        for name in ["plain.txt", "only", "link"] as [ByteString] {
          try (fixture.substitution / name).makeWhiteout()
          try mount.barrier()
          try expectErrno(.noSuchFileOrDirectory, "\(name)") { _ = try (mount.point / name).status() }
          #expect(try mount.names() == Fixture.rootNames.filter { $0 != name })
          try (fixture.substitution / name).remove()
          try mount.barrier()
          #expect(try mount.names() == Fixture.rootNames)

          try (fixture.substitution / (".wh." + name)).write("")
          try mount.barrier()
          try expectErrno(.noSuchFileOrDirectory, "\(name)") { _ = try (mount.point / name).status() }
          try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / (".wh." + name)).status() }
          #expect(try mount.names() == Fixture.rootNames.filter { $0 != name })
          try (fixture.substitution / (".wh." + name)).remove()
          try mount.barrier()
          _ = try (mount.point / name).status()
        }
        try expectFixture(at: mount.point)
      }
    }

    @Test("opaque markers of all formats appear and vanish", .timeLimit(.minutes(1)))
    func opaqueMarkers() throws {
      let fixture = try Fixture()
      let opaque = fixture.substitution / "folder"
      try withMount(fixture.setup) { mount in
        let merged: [ByteString] = ["added.txt", "both.txt", "inner.txt"]
        let topOnly: [ByteString] = ["added.txt", "both.txt"]
        for marker in ["trusted.overlay.opaque", "user.overlay.opaque"] as [ByteString] {
          #expect(try (mount.point / "folder").names() == merged)
          try opaque.setAttribute(marker, [UInt8(ascii: "y")])
          try mount.barrier()
          #expect(try (mount.point / "folder").names() == topOnly, "\(marker)")
          try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "folder/inner.txt").status() }
          try opaque.setAttribute(marker, [UInt8(ascii: "n")])
          try mount.barrier()
          #expect(try (mount.point / "folder").names() == merged)
          try opaque.removeAttribute(marker)
          try mount.barrier()
        }
        try (opaque / ".wh..wh..opq").write("")
        try mount.barrier()
        #expect(try (mount.point / "folder").names() == topOnly)
        try (opaque / ".wh..wh..opq").remove()
        try mount.barrier()
        #expect(try (mount.point / "folder").names() == merged)
      }
    }
  }
}
