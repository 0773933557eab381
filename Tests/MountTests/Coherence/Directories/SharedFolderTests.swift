import Posix
import TestSupport
import Testing

/// Folders that appear more than once in a mount, though inotify has a single watch for each.
extension MountTests {
  @Suite struct SharedFolderTests {
    @Test("a layer lies inside another layer", .timeLimit(.minutes(1)))
    func nestedLayer() throws {
      let fixture = try Fixture()
      let inner = fixture.main / "overrides"
      try (inner / "folder").makeDirectories()
      let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [inner])
      try withMount(setup) { mount in
        try expectSeen(mount, [inner / "folder": ["folder", "overrides/folder"], inner: ["", "overrides"]])
        // The folder is cached under both paths; it vanishes from both and reappears.
        try (inner / "folder").rename(to: fixture.folder / "aside")
        try mount.barrier()
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "overrides/folder").status() }
        #expect(try (mount.point / "folder").names() == ["both.txt", "inner.txt"])
        try (fixture.folder / "aside").rename(to: inner / "folder")
        try mount.barrier()
        try expectSeen(mount, [inner / "folder": ["folder", "overrides/folder"]])
      }
    }

    @Test("one folder serves as two layers", .timeLimit(.minutes(1)))
    func sameLayer() throws {
      let fixture = try Fixture()
      let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [fixture.main])
      try withMount(setup) { mount in
        try expectSeen(mount, [fixture.main / "folder": ["folder"], fixture.main: [""]])
      }
    }

    @Test("a layer is a bind mount of another layer's folder", .timeLimit(.minutes(1)))
    func boundLayer() throws {
      let fixture = try Fixture()
      let bound = try fixture.folder.folder("bound")
      try Command("mount", "--bind", (fixture.main / "only").text, bound.text).check()
      let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [bound])
      try withMount(setup) { mount in
        try expectSeen(mount, [fixture.main / "only": ["", "only"], bound / "deep": ["deep", "only/deep"]])
      }
    }

    @Test("two mounts share their layers", .timeLimit(.minutes(1)))
    func twoMounts() throws {
      let fixture = try Fixture()
      let other = try fixture.folder.folder("other")
      try withMount(fixture.setup) { mount in
        var setup = fixture.setup
        setup.point = other
        try withMount(setup) { second in
          for mount in [mount, second, mount] {
            try expectSeen(mount, [fixture.main / "folder": ["folder"], fixture.substitution: [""]])
          }
        }
      }
    }

    /// Expects a change in a folder at all its paths in the mount.
    private func expectSeen(
      _ mount: Mount, _ paths: [ByteString: [ByteString]], location: SourceLocation = #_sourceLocation
    ) throws {
      for (folder, paths) in paths {
        let file = folder / "of-the-test"
        let seen = paths.map { mount.point / $0 / "of-the-test" }
        func expectText(_ text: String?) throws {
          try mount.barrier()
          for path in seen {
            #expect((try? path.readText()) == text, "\(path)", sourceLocation: location)
            let isListed = try path.parent.names().contains("of-the-test")
            #expect(isListed == (text != nil), "\(path)", sourceLocation: location)
          }
        }
        try expectText(nil)
        for text in ["one", "the second"] {
          try file.write(text)
          try expectText(text)
        }
        try file.replace("the third, by a rename")
        try expectText("the third, by a rename")
        try file.remove()
        try expectText(nil)
      }
    }
  }
}
