import Glibc
import Posix
import TestSupport
import Testing

/// Where changes are not reported, a barrier invalidates all that the kernel has cached.
extension MountTests.ExclusiveTests {
  @Suite struct UncoveredBarrierTests {
    @Test("a barrier is enough when no inotify watches are left", .timeLimit(.minutes(2)))
    func watchLimit() throws {
      let fixture = try Fixture()
      let limit = try KernelLimit.watches(6)
      defer { limit.restore() }
      try withMount(fixture.setup) { mount in try expectBarriers(mount, fixture, writingTo: fixture.main) }
    }

    @Test(
      "a barrier is enough with timeouts", .timeLimit(.minutes(2)), arguments: ["cache=3600", "cache=none"])
    func timeouts(option: ByteString) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup(option)) { mount in
        try expectBarriers(mount, fixture, writingTo: fixture.main)
      }
    }

    @Test("a barrier is enough for a layer on FUSE", .timeLimit(.minutes(2)))
    func fuseLayer() throws {
      let fixture = try Fixture()
      let inner = try fixture.folder.folder("inner")
      var innerSetup = MountSetup(main: fixture.main, point: inner)
      innerSetup.options = ["cache=none"]
      try withMount(innerSetup) { innerMount in
        let setup = MountSetup(main: inner, point: fixture.point, substitutions: [fixture.substitution])
        try withMount(setup) { mount in
          try expectBarriers(mount, fixture, writingTo: fixture.main) { try innerMount.barrier() }
        }
      }
    }

    @Test("a barrier is enough for a file with two links that has no watch", .timeLimit(.minutes(1)))
    func linkedFile() throws {
      let fixture = try Fixture()
      try (fixture.main / "shown").makeDirectory()
      try (fixture.main / "shown/file").write("before\n")
      let elsewhere = fixture.folder / "elsewhere"
      try elsewhere.makeHardLink(of: fixture.main / "shown/file")
      try withMount(fixture.setup) { mount in
        // The directory has its watch, the file gets none.
        _ = try (mount.point / "shown").status()
        let limit = try KernelLimit.watches(0)
        defer { limit.restore() }
        _ = try (mount.point / "shown").list()
        for round in 0..<20 {
          #expect(try (mount.point / "shown/file").status().size > 0)
          _ = try (mount.point / "shown/file").read()
          let text = "after \(round)\n" + String(repeating: "x", count: round)
          try elsewhere.overwrite(Array(text.utf8), at: 0)
          try mount.barrier()
          #expect(try (mount.point / "shown/file").status().size == text.utf8.count)
          #expect(try (mount.point / "shown/file").readText() == text)
        }
      }
    }

    /// Changes a layer in all ways, and expects the mount to be right after each barrier.
    /// - Parameter prepare: makes the layer itself show the changes.
    private func expectBarriers(
      _ mount: Mount, _ fixture: Fixture, writingTo layer: ByteString, prepare: () throws -> Void = {}
    ) throws {
      let folder = mount.point / "folder"
      for round in 0..<20 {
        // Everything is cached: attributes, content, listings, missing names.
        try mount.warmCaches()
        #expect(
          !(folder / ByteString("late-\(round)")).exists
            && !(folder / ByteString("directory-\(round)")).exists)
        let text = String(repeating: "after \(round)\n", count: round + 1)
        try (layer / "folder/inner.txt").write(text)
        try (layer / ByteString("folder/late-\(round)")).write(text)
        try (layer / ByteString("folder/directory-\(round)/inside")).makeDirectories()
        if round > 0 { try (layer / ByteString("folder/late-\(round - 1)")).remove() }
        try prepare()
        try mount.barrier()
        #expect(try (folder / "inner.txt").status().size == text.utf8.count, "round \(round)")
        #expect(try (folder / "inner.txt").readText() == text, "round \(round)")
        #expect(try (folder / ByteString("late-\(round)")).readText() == text, "round \(round)")
        #expect((folder / ByteString("directory-\(round)/inside")).exists, "round \(round)")
        if round > 0 { #expect(!(folder / ByteString("late-\(round - 1)")).exists, "round \(round)") }
        #expect(try folder.names().contains(ByteString("late-\(round)")), "round \(round)")
        // The same size and time, so that only the barrier can tell.
        let status = try (layer / "folder/inner.txt").status()
        try (layer / "folder/inner.txt").overwrite(Array("AFTER".utf8), at: 0)
        try (layer / "folder/inner.txt").setModified(status.modified)
        try prepare()
        try mount.barrier()
        #expect(try (folder / "inner.txt").readText().hasPrefix("AFTER"), "round \(round)")
      }
    }
  }
}
