import Glibc
import Posix
import TestSupport
import Testing

/// What cannot be watched is not cached for long, and the daemon says so.
extension MountTests {
  @Suite struct DegradeTests {
    /// How old an answer may be where nothing is watched, in seconds.
    static let staleness = 1.5

    @Test("the limit of watches is reached, and lifted", .timeLimit(.minutes(2)))
    func watchLimit() throws {
      let fixture = try Fixture()
      for number in 0..<120 {
        let folder = fixture.main / ByteString("many/folder-\(number)")
        try folder.makeDirectories()
        try (folder / "file").write("before\n")
      }
      let limit = try KernelLimit.watches(20)
      defer { limit.restore() }
      try withMount(fixture.setup) { mount in
        try look(mount.point)
        try expectComplaint(mount, of: fixture.main)
        for number in 0..<120 {
          let folder = fixture.main / ByteString("many/folder-\(number)")
          try (folder / "file").write("after, and longer\n")
          try (folder / "new").write("new\n")
        }
        try expectSoon {
          for number in 0..<120 {
            let folder = mount.point / ByteString("many/folder-\(number)")
            guard try (folder / "file").readText() == "after, and longer\n", (folder / "new").exists,
              try folder.names() == ["file", "new"]
            else { return false }
          }
          return true
        }
        limit.restore()
        try expectRecovery(mount)
        try expectQuiet(mount)
      }
    }

    @Test("the queue of events overflows", .timeLimit(.minutes(2)))
    func overflow() throws {
      let fixture = try Fixture()
      let limit = try KernelLimit.queuedEvents(16)
      defer { limit.restore() }
      for number in 0..<200 { try (fixture.main / "folder" / ByteString("file-\(number)")).write("before\n") }
      try withMount(fixture.setup) { mount in
        try look(mount.point)
        // The daemon cannot take the events while it sleeps.
        mount.process.signal(SIGSTOP)
        for number in 0..<200 {
          let file = fixture.main / "folder" / ByteString("file-\(number)")
          if number % 3 == 0 { try file.remove() } else { try file.write("after, and longer\n") }
        }
        try (fixture.substitution / "only/deep").makeDirectories()
        try (fixture.substitution / "only/deep/new").write("new\n")
        mount.process.signal(SIGCONT)
        try mount.barrier()
        try expectSoon {
          for number in 0..<200 {
            let file = mount.point / "folder" / ByteString("file-\(number)")
            if number % 3 == 0 {
              if file.exists { return false }
            } else if try file.readText() != "after, and longer\n" {
              return false
            }
          }
          return try (mount.point / "only/deep").names() == ["file.txt", "new"]
        }
        try expectRecovery(mount)
        try expectQuiet(mount)
      }
    }

    @Test("a layer is itself a FUSE file system", .timeLimit(.minutes(1)))
    func fuseLayer() throws {
      let fixture = try Fixture()
      let inner = try fixture.folder.folder("inner")
      let backing = try fixture.folder.folder("backing")
      try (backing / "remote").makeDirectory()
      try (backing / "remote/file").write("before\n")
      var innerSetup = MountSetup(main: backing, point: inner)
      innerSetup.options = ["cache=none"]
      try withMount(innerSetup) { innerMount in
        let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [innerMount.point])
        try withMount(setup) { mount in
          #expect(try (mount.point / "remote/file").readText() == "before\n")
          try look(mount.point)
          try expectComplaint(mount, of: innerMount.point)
          for round in 0..<4 {
            let text = String(repeating: "after \(round)\n", count: round + 2)
            try (backing / "remote/file").write(text)
            try (backing / "remote" / ByteString("new-\(round)")).write(text)
            try expectSoon {
              try (mount.point / "remote/file").readText() == text
                && (mount.point / "remote" / ByteString("new-\(round)")).exists
                && (mount.point / "remote").names().count == round + 2
            }
            // What lies in the other layer is not worse off.
            try (fixture.main / "folder/inner.txt").write(text)
            try mount.barrier()
            try expectSoon { try (mount.point / "folder/inner.txt").readText() == text }
          }
        }
      }
    }

    @Test("a layer's root is deleted", .timeLimit(.minutes(1)))
    func deletedRoot() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try look(mount.point)
        try Command("rm", "-rf", fixture.substitution.text).check()
        try expectSoon {
          try (mount.point / "replaced.txt").readText() == "main's replaced\n"
            && (mount.point / "folder").names() == ["both.txt", "inner.txt"]
            && (mount.point / "folder/both.txt").readText() == "main's both\n"
        }
        try expectComplaint(mount, of: fixture.substitution)
        try expectChangesSeen(mount, in: fixture.main)
      }
    }

    @Test(
      "a layer's root is made anew", .timeLimit(.minutes(1)), arguments: ["removed", "swapped", "moved in"])
    func remadeRoot(manner: String) throws {
      let fixture = try Fixture()
      let other = try fixture.folder.folder("other")
      try (other / "replaced.txt").write("another's replaced\n")
      try withMount(fixture.setup) { mount in
        try look(mount.point)
        switch manner {
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
        try expectQuiet(mount)
      }
    }

    @Test("a layer's folder and those above it are made anew, again and again", .timeLimit(.minutes(1)))
    func remadeAncestors() throws {
      let fixture = try Fixture()
      let build = fixture.folder / "build"
      let out = build / "debug/out"
      try out.makeDirectories()
      try (out / "plain.txt").write("round 0\n")
      var setup = fixture.setup
      setup.substitutions = [out]
      try withMount(setup) { mount in
        for round in 1...6 {
          try look(mount.point)
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
          try expectSoon { try (mount.point / "plain.txt").readText() == "round \(round)\n" }
          try Command("rm", "-rf", next.text).check()
        }
        try expectRecovery(mount)
        try expectChangesSeen(mount, in: out)
        try expectQuiet(mount)
      }
    }

    @Test("a layer is not led elsewhere by a link in its place", .timeLimit(.minutes(1)))
    func linkInPlace() throws {
      let fixture = try Fixture()
      let outside = try fixture.folder.folder("outside")
      try (outside / "secret").write("secret")
      try withMount(fixture.setup) { mount in
        try look(mount.point)
        for target in [outside, mount.point, mount.point / "folder"] {
          try fixture.substitution.rename(to: fixture.folder / "aside")
          try fixture.substitution.makeLink(to: target)
          try mount.barrier()
          try mount.command("invalidate")
          try expectErrno(.noEntry) { _ = try (mount.point / "secret").status() }
          #expect(try (mount.point / "replaced.txt").readText() == "substitution's replaced, longer\n")
          try fixture.substitution.remove()
          try (fixture.folder / "aside").rename(to: fixture.substitution)
          try expectRecovery(mount)
        }
      }
    }

    @Test("a layer lies inside the folder that is mounted over", .timeLimit(.minutes(1)))
    func layerBelowMountPoint() throws {
      let fixture = try Fixture()
      let layer = fixture.main / "only/deep"
      try (layer / "plain.txt").write("the inner layer's\n")
      var setup = fixture.setup
      setup.substitutions = [layer]
      setup.point = fixture.main
      try withMount(setup) { mount in
        try look(mount.point)
        #expect(try (mount.point / "plain.txt").readText() == "the inner layer's\n")
        try mount.barrier()
        try mount.command("invalidate")
        try look(mount.point)
      }
    }

    @Test("below a folder that cannot be looked at, nothing takes long", .timeLimit(.minutes(1)))
    func closedFolder() throws {
      let fixture = try Fixture()
      let deep = ByteString((0..<40).map { _ in "d" }.joined(separator: "/"))
      try (fixture.main / deep).makeDirectories()
      try withOpenDevice {
        try withMount(try UserTests().userSetup(fixture)) { mount in
          let walk = Command(["find", mount.point / "d"]).asUser(UserTests.nobody)
          #expect(try walk.check(timeout: 20).outputText.split(separator: "\n").count == 40)
          try (fixture.main / "d").setMode(0)
          for name in ["sync", "invalidate", "sync"] as [ByteString] {
            try Command([fixture.folder / "bundlefs", name, mount.point]).asUser(UserTests.nobody)
              .check(timeout: 10)
          }
          _ = try walk.run(timeout: 10)
          try (fixture.main / "d").setMode(0o755)
          try expectSoon { try walk.run(timeout: 10).outputText.split(separator: "\n").count == 40 }
        }
      }
    }

    @Test("a layer's root is moved away and back", .timeLimit(.minutes(1)))
    func movedRoot() throws {
      let fixture = try Fixture()
      let away = fixture.folder / "away"
      try withMount(fixture.setup) { mount in
        try look(mount.point)
        try fixture.substitution.rename(to: away)
        try expectComplaint(mount, of: fixture.substitution)
        // The mount holds the folder itself, not its name.
        try expectChangesSeen(mount, in: away)
        try expectChangesSeen(mount, in: fixture.main)
        try away.rename(to: fixture.substitution)
        try expectRecovery(mount)
        try expectChangesSeen(mount, in: fixture.substitution)
        try expectQuiet(mount)
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
        try look(mount.point)
        #expect(try (mount.point / "folder/file").readText() == "before\n")
        // Whoever has it open can still change it.
        try fixture.substitution.withOpen(O_RDONLY | O_DIRECTORY) { held in
          try Command("umount", "-l", fixture.substitution.text).check()
          try expectComplaint(mount, of: fixture.substitution)
          let inside = ByteString("/proc/self/fd/\(held)/")
          try expectChangesSeen(mount, in: inside)
        }
        try expectChangesSeen(mount, in: fixture.main)
      }
    }

    @Test("without privileges, mounts that come and go inside a layer are seen", .timeLimit(.minutes(1)))
    func innerMount() throws {
      let fixture = try Fixture()
      let inner = fixture.main / "only"
      try withOpenDevice {
        try withMount(try UserTests().userSetup(fixture)) { mount in
          let seen = {
            try Command(["ls", mount.point / "only"]).asUser(UserTests.nobody).check().outputText
          }
          let sync = {
            try Command([fixture.folder / "bundlefs", "sync", mount.point]).asUser(UserTests.nobody).check(
              timeout: 20)
          }
          #expect(try seen() == "deep\n")
          try Command("mount", "-t", "tmpfs", "tmpfs", inner.text).check()
          do {
            defer { _ = try? Command("umount", "-l", inner.text).run() }
            try (inner / "inside").write("")
            _ = try sync()
            #expect(try seen() == "inside\n")
            try (inner / "more").write("")
            _ = try sync()
            #expect(try seen() == "inside\nmore\n")
          }
          _ = try sync()
          #expect(try seen() == "deep\n")
        }
      }
    }

    // MARK: - Parts

    /// Asks for everything, twice, so that it is cached if it may be.
    private func look(_ point: ByteString) throws {
      for _ in 0..<2 { try walk(point) }
    }

    private func walk(_ path: ByteString) throws {
      for entry in try path.list() where entry.name != ".routes" {
        if try (path / entry.name).status().kind == .directory {
          try walk(path / entry.name)
        } else {
          _ = try? (path / entry.name).read()
        }
      }
    }

    /// Comes true before an answer may be too old.
    private func expectSoon(location: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool)
      throws
    {
      let start = Clock.now
      var error: String?
      let isTrue = eventually(within: Self.staleness) {
        do {
          error = nil
          return try condition()
        } catch let caught {
          // What is asked for may not be there yet.
          error = "\(caught)"
          return false
        }
      }
      #expect(isTrue, "stale after \(Clock.now - start) s; \(error ?? "")", sourceLocation: location)
    }

    /// Files that come, change and go in the layer are seen before an answer may be too old.
    private func expectChangesSeen(
      _ mount: Mount, in layer: ByteString, location: SourceLocation = #_sourceLocation
    ) throws {
      let seen = mount.point / "of-the-test"
      for round in 0..<2 {
        try expectErrno(.noEntry, location: location) { _ = try seen.status() }
        for text in ["one \(round)\n", "the second \(round)\n"] {
          try (layer / "of-the-test").write(text)
          try expectSoon(location: location) {
            try seen.readText() == text && mount.point.names().contains("of-the-test")
          }
        }
        try (layer / "of-the-test").remove()
        try expectSoon(location: location) {
          try !seen.exists && !mount.point.names().contains("of-the-test")
        }
      }
    }

    /// The status names the layer and says why.
    private func expectComplaint(
      _ mount: Mount, of layer: ByteString, location: SourceLocation = #_sourceLocation
    ) throws {
      guard Mount.hasControl else { return }
      var report = try mount.report()
      let hasComplaint = try eventually(within: 5) {
        report = try mount.report()
        return report.layers.contains { $0.path == layer.text && !$0.caching && !($0.reason ?? "").isEmpty }
          || report.fallbacks.contains { $0.layer == layer.text && !$0.reason.isEmpty }
      }
      #expect(hasComplaint, "\(report.complaints)", sourceLocation: location)
    }

    /// Full caching comes back by itself, as the mount is used.
    private func expectRecovery(_ mount: Mount, location: SourceLocation = #_sourceLocation) throws {
      guard Mount.hasControl else { return }
      var complaints: [String] = []
      let isWell = try eventually(within: 20) {
        try walk(mount.point)
        complaints = try mount.report().complaints
        return complaints.isEmpty
      }
      #expect(isWell, "\(complaints)", sourceLocation: location)
    }

    /// What has been asked for once is not asked again.
    private func expectQuiet(_ mount: Mount, location: SourceLocation = #_sourceLocation) throws {
      guard Mount.hasControl else { return }
      var growth: [String] = []
      // What was told with a short timeout before is asked once more when that is over, and the kernel may
      // drop a page of its own accord.
      let isQuiet = try eventually(within: 10) {
        try mount.barrier()
        try look(mount.point)
        let before = RequestCounts(try mount.report())
        // Longer than short timeouts last.
        Clock.sleep(1.2)
        try look(mount.point)
        growth = RequestCounts(try mount.report()).growth(since: before)
        return growth == []
      }
      #expect(isQuiet, "\(growth)", sourceLocation: location)
    }
  }
}
