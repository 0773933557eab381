import Glibc
import Posix
import TestSupport
import Testing

/// The ways to cache, and how to drop what is cached.
extension MountTests {
  @Suite struct CacheModeTests {
    @Test("cache=none asks each time, and shows changes at once", .timeLimit(.minutes(1)))
    func none() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["cache=none"]
      try withMount(setup) { mount in
        try expectFixture(at: mount.point)
        if Mount.hasControl {
          let report = try mount.report()
          #expect(report.cache == "none" && report.watches == 0)
          let growth = try growth(mount) { try expectFixture(at: mount.point) }
          #expect(growth.contains { $0.hasPrefix("LOOKUP") || $0.hasPrefix("GETATTR") }, "\(growth)")
        }
        for round in 0..<30 {
          let text = String(repeating: "round \(round)\n", count: round + 1)
          for layer in [fixture.main, fixture.substitution] {
            try (layer / "folder/changing").write(text)
            #expect(try (mount.point / "folder/changing").readText() == text)
          }
          try (fixture.substitution / "folder/changing").remove()
          try (fixture.main / "folder/changing").remove()
          try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "folder/changing").status() }
        }
      }
    }

    @Test("cache=1 asks again after a second", .enabled(if: Mount.hasControl), .timeLimit(.minutes(1)))
    func seconds() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["cache=1"]
      try withMount(setup) { mount in
        #expect(try mount.report().watches == 0)
        #expect(try mount.report().cache == "1")
        for round in 0..<5 {
          let text = String(repeating: "round \(round)\n", count: round + 1)
          try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "new").status() }
          try (fixture.main / "plain.txt").write(text)
          try (fixture.main / "new").write(text)
          let seen = try eventually(within: 1.5) {
            try (mount.point / "plain.txt").readText() == text && (mount.point / "new").exists
              && mount.point.names().contains("new")
          }
          #expect(seen, "round \(round)")
          try (fixture.main / "new").remove()
          let isGone = try eventually(within: 1.5) {
            try !(mount.point / "new").exists && !mount.point.names().contains("new")
          }
          #expect(isGone, "round \(round)")
        }
        // Within the second nothing is asked.
        let isQuiet = try eventually(within: 10) {
          try lookTwice(mount.point)
          let start = Clock.now
          // Listings are not kept in this mode, and each takes the directory's time of last access with it.
          let growth = try growth(mount) { try look(mount.point) }
            .filter { !$0.contains("DIR") && !$0.contains("GETATTR") }
          return growth.isEmpty && Clock.now - start < 1
        }
        #expect(isQuiet)
      }
    }

    @Test("what is no way to cache is refused", .enabled(if: Mount.hasControl), .timeLimit(.minutes(1)))
    func wrongValues() throws {
      let fixture = try Fixture()
      for value in ["", "=", "=some", "=-1", "=1x", "=nan", "=1e99"] {
        var setup = fixture.setup
        setup.options = [ByteString("cache\(value)")]
        let outcome = try setup.command(foreground: true).run(timeout: 20)
        #expect(outcome.status == 2, "cache\(value): \(outcome.errorText)")
        #expect(outcome.errorText.contains("cache"), "\(outcome.errorText)")
        #expect(try MountTable.entry(at: fixture.point) == nil)
      }
    }

    /// Who drops everything.
    enum Lever: CaseIterable {
      case command
      case control
      case signal
    }

    @Test(
      "after an invalidation of all, all is asked anew", .enabled(if: Mount.hasControl),
      .timeLimit(.minutes(1)), arguments: Lever.allCases)
    func invalidation(lever: Lever) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try lookTwice(mount.point)
        #expect(try growth(mount) { try look(mount.point) } == [])
        switch lever {
        case .command: try mount.command("invalidate")
        case .control: try mount.say("bundlefs:///invalidate\n")
        case .signal:
          mount.process.signal(SIGHUP)
          // Nobody says when the signal has been heard.
          Clock.sleep(0.5)
          try mount.barrier()
        }
        let growth = try growth(mount) { try look(mount.point) }
        for kind in ["READ ", "READDIRPLUS", "READLINK"] {
          #expect(growth.contains { $0.hasPrefix(kind) }, "\(kind) in \(growth)")
        }
        // The kernel forgets the time of the last access when content comes from the daemon.
        try look(mount.point)
        #expect(try self.growth(mount) { try look(mount.point) } == [])
        #expect(mount.process.status() == nil)
      }
    }

    @Test(
      "with cache=SECONDS, too, an invalidation shows what is new at once", .enabled(if: Mount.hasControl),
      .timeLimit(.minutes(1)), arguments: Lever.allCases)
    func secondsInvalidation(lever: Lever) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["cache=600"]
      try withMount(setup) { mount in
        let seen = mount.point / "folder"
        try lookTwice(mount.point)
        try expectErrno(.noSuchFileOrDirectory) { _ = try (seen / "new").status() }
        try (fixture.main / "folder/inner.txt").write("changed in place")
        try (fixture.main / "folder/new").write("new")
        #expect(try (seen / "inner.txt").readText() != "changed in place", "it is cached")
        try expectErrno(.noSuchFileOrDirectory) { _ = try (seen / "new").status() }
        switch lever {
        case .command: try mount.command("invalidate", "folder")
        case .control: try mount.say("bundlefs:///invalidate\n")
        case .signal:
          mount.process.signal(SIGHUP)
          Clock.sleep(0.5)
        }
        #expect(try (seen / "inner.txt").readText() == "changed in place")
        #expect(try (seen / "new").readText() == "new")
        #expect(try seen.names().contains("new"))
      }
    }

    @Test(
      "after an invalidation of a path, what is below is asked anew and nothing else",
      .enabled(if: Mount.hasControl), .timeLimit(.minutes(1)), arguments: Lever.allCases.dropLast())
    func pathInvalidation(lever: Lever) throws {
      let fixture = try Fixture()
      let odd: ByteString = "with space%2F"
      try (fixture.main / odd).makeDirectory()
      try (fixture.main / odd / "file").write("odd")
      try withMount(fixture.setup) { mount in
        for (path, url) in [("folder", "folder"), (odd, "with%20space%252F")] as [(ByteString, String)] {
          try lookTwice(mount.point)
          #expect(try growth(mount) { try look(mount.point) } == [])
          if lever == .command {
            try mount.command("invalidate", path)
          } else {
            try mount.say("bundlefs:///invalidate/\(url)\n")
          }
          #expect(try growth(mount) { try look(mount.point / "only") } == [], "\(path)")
          let growth = try growth(mount) { try look(mount.point / path) }
          for kind in ["READDIRPLUS", "READ "] {
            #expect(growth.contains { $0.hasPrefix(kind) }, "\(path): \(kind) in \(growth)")
          }
        }
      }
    }

    @Test(
      "the control file is a file of its owner's, and takes nothing wrong", .enabled(if: Mount.hasControl),
      .timeLimit(.minutes(1)))
    func controlFile() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["allow_other"]
      try withMount(setup) { mount in
        let status = try mount.routes.status()
        #expect(status.kind == .regular && status.permissions == 0o600 && status.owner == getuid())
        #expect(try mount.point.names().filter { $0 == ".routes" }.count == 1)
        let stranger = try Command.shell(#"echo bundlefs:///sync > "$1""#, mount.routes).asUser(65534).run()
        #expect(stranger.status != 0)
        try Command.shell(
          #"echo bundlefs:///sync > "$1" && echo bundlefs:///sync >> "$1" && printf bundlefs:///sync > "$1""#,
          mount.routes
        ).check(timeout: 10)
        for line in ["bundlefs:///nosuch\n", "bundlefs://\n"] {
          #expect(try errorNumber { try mount.say(line) } != nil, "\(line)")
        }
      }
    }

    // MARK: - Parts

    /// By what the counters grow while the body runs.
    private func growth(_ mount: Mount, _ body: () throws -> Void) throws -> [String] {
      let before = RequestCounts(try mount.report())
      try body()
      return RequestCounts(try mount.report()).growth(since: before)
    }

    /// The second time the kernel asks again for what it forgets when content comes from the daemon: the time
    /// of the last access.
    private func lookTwice(_ point: ByteString) throws {
      try look(point)
      try look(point)
    }

    /// Lists, looks at and reads everything below but the control file.
    private func look(_ path: ByteString) throws {
      for entry in try path.list() where entry.name != ".routes" {
        switch try (path / entry.name).status().kind {
        case .directory: try look(path / entry.name)
        case .symbolicLink: _ = try (path / entry.name).linkTarget()
        default: _ = try (path / entry.name).read()
        }
      }
    }
  }
}
