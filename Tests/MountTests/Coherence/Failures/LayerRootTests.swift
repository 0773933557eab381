import Glibc
import Posix
import TestSupport
import Testing

/// Layers whose root is deleted, recreated, moved, or covered by the mount.
extension MountTests {
  @Suite struct LayerRootTests {
    @Test("a layer's root is deleted", .timeLimit(.minutes(1)))
    func deletedRoot() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.warmCaches()
        try Command("rm", "-rf", fixture.substitution.text).check()
        try expectEventually {
          try (mount.point / "replaced.txt").readText() == "main's replaced\n"
            && (mount.point / "folder").names() == ["both.txt", "inner.txt"]
            && (mount.point / "folder/both.txt").readText() == "main's both\n"
        }
        try expectUncached(mount, of: fixture.substitution)
        try expectChangesSeen(mount, in: fixture.main)
      }
    }

    @Test(
      "a layer's root is recreated", .timeLimit(.minutes(1)), arguments: ["removed", "swapped", "moved in"])
    func recreatedRoot(change: String) throws {
      let fixture = try Fixture()
      let other = try fixture.folder.folder("other")
      try (other / "replaced.txt").write("another's replaced\n")
      try withMount(fixture.setup) { mount in
        try mount.warmCaches()
        switch change {
        case "removed":
          try Command("rm", "-rf", fixture.substitution.text).check()
          try Command("cp", "-a", other.text, fixture.substitution.text).check()
        case "swapped":
          try other.exchange(with: fixture.substitution)
        default:
          try fixture.substitution.rename(to: fixture.folder / "former")
          try mount.barrier()
          try other.rename(to: fixture.substitution)
        }
        try mount.barrier()
        #expect(try (mount.point / "replaced.txt").readText() == "another's replaced\n")
        #expect(try (mount.point / "folder").names() == ["both.txt", "inner.txt"])
        try expectRecovery(mount)
        try expectChangesSeen(mount, in: fixture.substitution)
        try expectNoRequests(mount)
      }
    }

    @Test("a layer's folder and its ancestors are replaced repeatedly", .timeLimit(.minutes(1)))
    func recreatedAncestors() throws {
      let fixture = try Fixture()
      let build = fixture.folder / "build"
      let out = build / "debug/out"
      try out.makeDirectories()
      try (out / "plain.txt").write("round 0\n")
      var setup = fixture.setup
      setup.substitutions = [out]
      try withMount(setup) { mount in
        for round in 1...6 {
          try mount.warmCaches()
          #expect(try (mount.point / "plain.txt").readText() == "round \(round - 1)\n")
          let next = fixture.folder / ByteString("next")
          try (next / "debug/out").makeDirectories()
          try (next / "debug/out/plain.txt").write("round \(round)\n")
          switch round % 3 {
          case 0: try out.exchange(with: next / "debug/out")
          case 1: try build.exchange(with: next)
          default:
            try Command("rm", "-rf", build.text).check()
            try next.rename(to: build)
          }
          try expectEventually { try (mount.point / "plain.txt").readText() == "round \(round)\n" }
          try Command("rm", "-rf", next.text).check()
        }
        try expectRecovery(mount)
        try expectChangesSeen(mount, in: out)
        try expectNoRequests(mount)
      }
    }

    @Test(
      "a layer is found again when the directory above it is removed and made anew", .timeLimit(.minutes(4)))
    func parentMadeAnew() throws {
      let fixture = try Fixture()
      let above = fixture.folder / "above"
      var setup = fixture.setup
      setup.substitutions = [above / "layer"]
      var random = SplitMix64(seed: 48)
      try (above / "layer").makeDirectories()
      try withMount(setup) { mount in
        for round in 0..<60 {
          let text = "\(round)"
          try (above / "layer/file").write(text)
          let isShown = eventually(within: 20) { (try? (mount.point / "file").readText()) == text }
          try #require(isShown, "round \(round)")
          above.removeTree()
          usleep(.random(in: 0..<10_000, using: &random))
          try above.makeDirectory()
          usleep(.random(in: 0..<10_000, using: &random))
          try (above / "layer").makeDirectory()
        }
      }
    }

    @Test("a layer's root is moved away and back", .timeLimit(.minutes(1)))
    func movedRoot() throws {
      let fixture = try Fixture()
      let away = fixture.folder / "away"
      try withMount(fixture.setup) { mount in
        try mount.warmCaches()
        let file = try Descriptor.open((mount.point / "folder/added.txt").bytes, [.read])
        for _ in 0..<2 {
          try fixture.substitution.rename(to: away)
          try mount.barrier()
          try expectMerged([fixture.main], at: mount.point)
          #expect(try file.readAll() == Array("substitution's added\n".utf8))
          try expectChangesSeen(mount, in: fixture.main)
          try away.rename(to: fixture.substitution)
          try mount.barrier()
          try expectMerged([fixture.substitution, fixture.main], at: mount.point)
          try expectRecovery(mount)
          try expectChangesSeen(mount, in: fixture.substitution)
          try expectNoRequests(mount)
        }
      }
    }

    @Test("a substitution may come later", .timeLimit(.minutes(1)))
    func missing() throws {
      let fixture = try Fixture()
      let later = fixture.folder / "not/yet"
      var setup = fixture.setup("missing=empty")
      setup.substitutions = [later, fixture.substitution]
      try withMount(setup) { mount in
        try expectFixture(at: mount.point)
        #expect(try mount.report().layers[0].absent == true)
        try mount.warmCaches()
        for round in 0..<3 {
          try later.makeDirectories()
          try (later / "plain.txt").write("round \(round)\n")
          try mount.barrier()
          #expect(try (mount.point / "plain.txt").readText() == "round \(round)\n")
          #expect(try mount.report().layers[0].absent == false)
          try expectChangesSeen(mount, in: later)
          try Command("rm", "-rf", (fixture.folder / "not").text).check()
          try mount.barrier()
          try expectFixture(at: mount.point)
        }
      }
      setup.options = []
      let outcome = try setup.command(foreground: true).run()
      #expect(
        outcome.status == 1 && outcome.errorText.contains("no such directory or archive"),
        "\(outcome.errorText)")
      #expect(outcome.errorText.contains("'-o missing=empty'"), "\(outcome.errorText)")
    }

    @Test(
      "without a coherent cache, roots and archives are followed as well", .timeLimit(.minutes(1)),
      arguments: ["cache=none", "cache=1"] as [ByteString])
    func uncached(option: ByteString) throws {
      let fixture = try Fixture()
      let later = fixture.folder / "not/yet"
      let archive = fixture.folder / "layer.zip"
      try archive.write(ZipBuilder([.init("packed.txt", "first")]).bytes)
      var setup = fixture.setup("missing=empty", option)
      setup.substitutions = [later, fixture.substitution, archive]
      try withMount(setup) { mount in
        for round in 0..<3 {
          try later.makeDirectories()
          try (later / "plain.txt").write("round \(round)\n")
          try archive.replace(ZipBuilder([.init("packed.txt", "round \(round)")]).bytes)
          try mount.barrier()
          #expect(try (mount.point / "plain.txt").readText() == "round \(round)\n")
          #expect(try (mount.point / "packed.txt").readText() == "round \(round)")
          #expect(try mount.report().layers[0].absent == false)
          try Command("rm", "-rf", (fixture.folder / "not").text, fixture.substitution.text).check()
          try fixture.substitution.makeDirectory()
          try (fixture.substitution / "again.txt").write("again\n")
          // No request may be needed.
          let isSeen = eventually(within: 20) {
            (try? (mount.point / "plain.txt").readText()) == "main's plain\n"
              && (try? (mount.point / "again.txt").readText()) == "again\n"
          }
          #expect(isSeen)
        }
      }
    }

    @Test("a symbolic link in place of a layer's root is not followed", .timeLimit(.minutes(1)))
    func symbolicLink() throws {
      let fixture = try Fixture()
      let outside = try fixture.folder.folder("outside")
      try (outside / "secret").write("secret")
      try withMount(fixture.setup) { mount in
        try mount.warmCaches()
        for target in [outside, mount.point, mount.point / "folder"] {
          try fixture.substitution.rename(to: fixture.folder / "aside")
          try fixture.substitution.makeLink(to: target)
          try mount.barrier()
          try mount.command("invalidate")
          try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "secret").status() }
          #expect(try (mount.point / "replaced.txt").readText() == "main's replaced\n")
          try fixture.substitution.remove()
          try (fixture.folder / "aside").rename(to: fixture.substitution)
          try expectRecovery(mount)
        }
      }
    }

    @Test("a layer lies inside the folder that the mount covers", .timeLimit(.minutes(1)))
    func layerBelowMountPoint() throws {
      let fixture = try Fixture()
      let layer = fixture.main / "only/deep"
      try (layer / "plain.txt").write("the inner layer's\n")
      var setup = fixture.setup
      setup.substitutions = [layer]
      setup.point = fixture.main
      try withMount(setup) { mount in
        try mount.warmCaches()
        #expect(try (mount.point / "plain.txt").readText() == "the inner layer's\n")
        try mount.barrier()
        try mount.command("invalidate")
        try mount.warmCaches()
      }
    }

    @Test("a layer's file system is unmounted lazily", .timeLimit(.minutes(1)))
    func unmountedLayer() throws {
      let fixture = try Fixture(isFilled: false)
      try Command("mount", "-t", "tmpfs", "tmpfs", fixture.substitution.text).check()
      try (fixture.substitution / "folder").makeDirectory()
      try (fixture.substitution / "folder/file").write("before\n")
      try (fixture.main / "folder").makeDirectory()
      try (fixture.main / "folder/file").write("main's\n")
      try withMount(fixture.setup) { mount in
        try mount.warmCaches()
        #expect(try (mount.point / "folder/file").readText() == "before\n")
        // It can still be changed through an open descriptor.
        try fixture.substitution.withOpen(O_RDONLY | O_DIRECTORY) { root in
          try Command("umount", "-l", fixture.substitution.text).check()
          try expectUncached(mount, of: fixture.substitution)
          let inside = ByteString("/proc/self/fd/\(root)/")
          try expectChangesSeen(mount, in: inside)
        }
        try expectChangesSeen(mount, in: fixture.main)
      }
    }
  }
}
