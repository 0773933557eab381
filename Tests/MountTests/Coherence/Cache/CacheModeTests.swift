import Glibc
import Posix
import TestSupport
import Testing

/// The `cache` option and explicit invalidation.
extension MountTests.ExclusiveTests {
  @Suite struct CacheModeTests {
    @Test("cache=none caches nothing and shows changes at once", .timeLimit(.minutes(1)))
    func noCache() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("cache=none")) { mount in
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

    @Test("cache=1 shows changes after a second", .enabled(if: Mount.hasControl), .timeLimit(.minutes(1)))
    func timeout() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("cache=1")) { mount in
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
        // Within the second there are no requests.
        let isQuiet = try eventually(within: 10) {
          try walkTwice(mount.point)
          let start = Clock.now
          // This mode does not cache listings, and each READDIR invalidates the directory's atime.
          let growth = try growth(mount) { try walk(mount.point) }
            .filter { !$0.contains("DIR") && !$0.contains("GETATTR") }
          return growth.isEmpty && Clock.now - start < 1
        }
        #expect(isQuiet)
      }
    }

    @Test("invalid cache values are refused", .enabled(if: Mount.hasControl), .timeLimit(.minutes(1)))
    func wrongValues() throws {
      let fixture = try Fixture()
      for value in ["", "=", "=some", "=-1", "=1x", "=nan", "=1e99"] {
        let setup = fixture.setup(ByteString("cache\(value)"))
        let outcome = try setup.command(foreground: true).run(timeout: 20)
        #expect(outcome.status == 2, "cache\(value): \(outcome.errorText)")
        #expect(outcome.errorText.contains("cache"), "\(outcome.errorText)")
        #expect(try MountTable.entry(at: fixture.point) == nil)
      }
    }

    /// How the caches are invalidated.
    enum Trigger: CaseIterable {
      case command
      case control
      case signal
    }

    @Test(
      "after invalidating everything, every access causes requests", .enabled(if: Mount.hasControl),
      .timeLimit(.minutes(1)), arguments: Trigger.allCases)
    func invalidation(trigger: Trigger) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try walkTwice(mount.point)
        #expect(try growth(mount) { try walk(mount.point) } == [])
        switch trigger {
        case .command: try mount.command("invalidate")
        case .control: try mount.writeControl("bundlefs:///invalidate\n")
        case .signal:
          mount.process.signal(SIGHUP)
          // The daemon does not report when it has handled the signal.
          Clock.sleep(0.5)
          try mount.barrier()
        }
        let growth = try growth(mount) { try walk(mount.point) }
        for kind in ["READ ", "READDIRPLUS", "READLINK"] {
          #expect(growth.contains { $0.hasPrefix(kind) }, "\(kind) in \(growth)")
        }
        // A READ invalidates the cached atime.
        try walk(mount.point)
        #expect(try self.growth(mount) { try walk(mount.point) } == [])
        #expect(mount.process.status() == nil)
      }
    }

    @Test(
      "with cache=SECONDS an invalidation shows changes at once", .enabled(if: Mount.hasControl),
      .timeLimit(.minutes(1)), arguments: Trigger.allCases)
    func secondsInvalidation(trigger: Trigger) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("cache=600")) { mount in
        let seen = mount.point / "folder"
        try walkTwice(mount.point)
        try expectErrno(.noSuchFileOrDirectory) { _ = try (seen / "new").status() }
        try (fixture.main / "folder/inner.txt").write("changed in place")
        try (fixture.main / "folder/new").write("new")
        #expect(try (seen / "inner.txt").readText() != "changed in place", "the old content is cached")
        try expectErrno(.noSuchFileOrDirectory) { _ = try (seen / "new").status() }
        switch trigger {
        case .command: try mount.command("invalidate", "folder")
        case .control: try mount.writeControl("bundlefs:///invalidate\n")
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
      "invalidating a path causes requests below it and nowhere else",
      .enabled(if: Mount.hasControl), .timeLimit(.minutes(1)), arguments: Trigger.allCases.dropLast())
    func pathInvalidation(trigger: Trigger) throws {
      let fixture = try Fixture()
      let odd: ByteString = "with space%2F"
      try (fixture.main / odd).makeDirectory()
      try (fixture.main / odd / "file").write("odd")
      try withMount(fixture.setup) { mount in
        for (path, url) in [("folder", "folder"), (odd, "with%20space%252F")] as [(ByteString, String)] {
          try walkTwice(mount.point)
          #expect(try growth(mount) { try walk(mount.point) } == [])
          if trigger == .command {
            try mount.command("invalidate", path)
          } else {
            try mount.writeControl("bundlefs:///invalidate/\(url)\n")
          }
          #expect(try growth(mount) { try walk(mount.point / "only") } == [], "\(path)")
          let growth = try growth(mount) { try walk(mount.point / path) }
          for kind in ["READDIRPLUS", "READ "] {
            #expect(growth.contains { $0.hasPrefix(kind) }, "\(path): \(kind) in \(growth)")
          }
        }
      }
    }

    @Test(
      "only the owner can write the control file, and invalid lines are refused",
      .enabled(if: Mount.hasControl),
      .timeLimit(.minutes(1)))
    func controlFile() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("allow_other")) { mount in
        let status = try mount.controlFile.status()
        #expect(status.kind == .regular && status.permissions == 0o600 && status.owner == getuid())
        #expect(try mount.point.names() == Fixture.rootNames)
        let stranger = try Command.shell(#"echo bundlefs:///sync > "$1""#, mount.controlFile).asUser(65534)
          .run()
        #expect(stranger.status != 0)
        try Command.shell(
          #"echo bundlefs:///sync > "$1" && echo bundlefs:///sync >> "$1" && printf bundlefs:///sync > "$1""#,
          mount.controlFile
        ).check(timeout: 10)
        for line in ["bundlefs:///nosuch\n", "bundlefs://\n"] {
          #expect(try errorNumber { try mount.writeControl(line) } != nil, "\(line)")
        }
      }
    }

    // MARK: - Helpers

    /// The growth of the request counters while the body runs.
    private func growth(_ mount: Mount, _ body: () throws -> Void) throws -> [String] {
      let before = RequestCounts(try mount.report())
      try body()
      return RequestCounts(try mount.report()).growth(since: before)
    }

    /// Walks twice: the second walk refreshes the atimes that the first one's READs invalidated.
    private func walkTwice(_ point: ByteString) throws {
      try walk(point)
      try walk(point)
    }

    /// Lists, stats and reads everything below a path except the control file.
    private func walk(_ path: ByteString) throws {
      for entry in try path.list() {
        switch try (path / entry.name).status().kind {
        case .directory: try walk(path / entry.name)
        case .symbolicLink: _ = try (path / entry.name).linkTarget()
        default: _ = try (path / entry.name).read()
        }
      }
    }
  }
}
