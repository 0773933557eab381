import Glibc
import Posix
import TestSupport
import Testing

/// `-o passthrough`: the kernel reads the layers' files itself.
extension MountTests {
  @Suite struct PassthroughTests {
    private static let large = [UInt8](repeating: UInt8(ascii: "L"), count: 3 << 20)

    private func fixture(_ option: ByteString = "passthrough") throws -> (Fixture, MountSetup) {
      let fixture = try Fixture()
      try (fixture.main / "large").write(Self.large)
      let setup = fixture.setup(option)
      return (fixture, setup)
    }

    private func statistics(_ mount: Mount) throws -> StatusReport.Passthrough {
      try #require(try mount.report().passthrough)
    }

    @Test("a large file causes no READ, a small one still does", .timeLimit(.minutes(1)))
    func requests() throws {
      let (fixture, setup) = try fixture()
      defer { withExtendedLifetime(fixture) {} }
      try withMount(setup) { mount in
        #expect(try (mount.point / "large").read() == Self.large)
        var requests = RequestCounts(try mount.report())
        #expect(requests["READ"] == 0 && requests["OPEN"] == 1, "\(requests)")
        for (path, text) in Fixture.content { #expect(try (mount.point / path).readText() == text) }
        for (path, text) in Fixture.content { #expect(try (mount.point / path).readText() == text) }
        requests = RequestCounts(try mount.report())
        // Those that are next in a directory may have been read ahead.
        #expect((1...Fixture.content.count).contains(requests["READ"]), "\(requests)")
        let statistics = try statistics(mount)
        #expect(statistics.smallest == 128 << 10 && statistics.opened == 1 && statistics.refused == 0)
        #expect(statistics.reason == nil)
      }
    }

    @Test("open passthrough files are counted and released on close", .timeLimit(.minutes(1)))
    func counts() throws {
      let (fixture, setup) = try fixture()
      defer { withExtendedLifetime(fixture) {} }
      try withMount(setup) { mount in
        let path = mount.point / "large"
        try path.withOpen(O_RDONLY) { _ in
          try path.withOpen(O_RDONLY) { _ in
            let open = try statistics(mount).open
            #expect(open == 1)
          }
          let open = try statistics(mount).open
          #expect(open == 1)
        }
        let isReleased = try eventually(within: 5) { try statistics(mount).open == 0 }
        let opened = try statistics(mount).opened
        #expect(isReleased && opened == 2)
      }
    }

    @Test("a change in place is visible at once", .timeLimit(.minutes(1)))
    func inPlace() throws {
      let (fixture, setup) = try fixture()
      try withMount(setup) { mount in
        try (mount.point / "large").withOpen(O_RDONLY) { file in
          for round in 0..<50 {
            let patch = [UInt8](repeating: UInt8(round), count: 5000)
            try (fixture.main / "large").overwrite(patch, at: round * 7001)
            var seen = [UInt8](repeating: 0, count: patch.count)
            #expect(pread(file, &seen, seen.count, off_t(round * 7001)) == seen.count && seen == patch)
          }
        }
      }
    }

    @Test(
      "files are passed through by a successor, too, and stay open in the kernel", .timeLimit(.minutes(1)))
    func survival() throws {
      let (fixture, setup) = try fixture()
      try withMount(setup) { mount in
        let path = mount.point / "large"
        for replace in [{ try $0.killWorker() }, { try $0.command("upgrade") }] as [(Mount) throws -> Void] {
          try path.withOpen(O_RDONLY) { former in
            try replace(mount)
            // The kernel demands the backing file that it has for the open one.
            #expect(try path.read() == Self.large)
            let patch = [UInt8](repeating: UInt8.random(in: 0...255), count: 5000)
            try (fixture.main / "large").overwrite(patch, at: 70_000)
            var seen = [UInt8](repeating: 0, count: patch.count)
            #expect(pread(former, &seen, seen.count, 70_000) == seen.count && seen == patch)
            try (fixture.main / "large").overwrite([UInt8](Self.large.prefix(5000)), at: 70_000)
            let statistics = try statistics(mount)
            #expect(statistics.open == 1 && statistics.refused == 0 && statistics.reason == nil)
          }
          let isReleased = try eventually(within: 5) { try statistics(mount).open == 0 }
          #expect(isReleased)
          try (fixture.main / "large").replace(Self.large)
          try mount.barrier()
          #expect(try path.read() == Self.large)
          let requests = RequestCounts(try mount.report())
          #expect(requests["READ"] == 0 && requests["OPEN"] > 0, "\(requests)")
        }
      }
    }

    @Test("opening for writing is refused, except for the control file", .timeLimit(.minutes(1)))
    func writing() throws {
      let (fixture, setup) = try fixture("passthrough=0")
      try withMount(setup) { mount in
        for flags in [O_WRONLY, O_RDWR, O_WRONLY | O_APPEND, O_RDWR | O_TRUNC] {
          for name in ["large", "plain.txt"] as [ByteString] {
            try expectErrno(.readOnlyFileSystem) { try (mount.point / name).withOpen(flags) { _ in } }
          }
        }
        try mount.writeControl("route Animal s:Name\n")
        #expect(try (mount.point / ".routes").readText().contains("route Animal s:Name"))
        #expect(try (fixture.main / "large").read() == Self.large)
      }
    }

    @Test("a program can be executed and mapped", .timeLimit(.minutes(1)))
    func program() throws {
      let (fixture, setup) = try fixture("passthrough=0")
      try Command("cp", "/bin/cat", (fixture.main / "cat").text).check()
      try withMount(setup) { mount in
        let outcome = try Command([mount.point / "cat", mount.point / "plain.txt"]).check()
        #expect(outcome.outputText == "main's plain\n")
        let requests = RequestCounts(try mount.report())
        #expect(requests["READ"] == 0, "\(requests)")
      }
    }

    @Test(
      "concurrent readers see whole files while they are replaced, grow and shrink",
      .timeLimit(.minutes(2)))
    func changing() throws {
      let fixture = try Fixture(isFilled: false)
      let names = (0..<4).map { ByteString("file\($0)") }
      for name in names { try (fixture.main / name).write(Self.whole(0, 1000)) }
      var setup = fixture.setup
      // Some of the sizes are below this threshold.
      setup.options = ["passthrough=64K"]
      try withMount(setup) { mount in
        let end = Clock.now + 8
        let readers = try (0..<4).map { try FileReader(names.map { mount.point / $0 }, seed: $0, until: end) }
        var random = SplitMix64(seed: 3)
        var version: UInt8 = 0
        while Clock.now < end {
          version &+= 1
          let path = fixture.main / names[Int.random(in: 0..<4, using: &random)]
          try path.replace(Self.whole(version, Int.random(in: 1...200_000, using: &random)))
          if version % 16 == 0 { try mount.barrier() }
        }
        for reader in readers {
          let (count, faults) = reader.result()
          #expect(faults.isEmpty, "\(faults.prefix(5))")
          #expect(count > 50, "only \(count) reads")
        }
        try mount.barrier()
        for name in names { #expect(try (mount.point / name).read() == (fixture.main / name).read()) }
        let statistics = try statistics(mount)
        #expect(statistics.refused == 0 && statistics.opened > 0)
        let isReleased = try eventually(within: 5) { try self.statistics(mount).open == 0 }
        #expect(isReleased)
      }
    }

    /// A content that is recognizably whole: its last byte is the complement of the others.
    private static func whole(_ version: UInt8, _ size: Int) -> [UInt8] {
      [UInt8](repeating: version, count: size) + [~version]
    }

    @Test(
      "a layer on overlayfs is passed through, but not one on two stacked overlayfs mounts",
      .timeLimit(.minutes(1)))
    func stacked() throws {
      let (fixture, setup) = try fixture()
      let lower = try fixture.folder.folder("lower")
      let once = try fixture.folder.folder("once")
      let twice = try fixture.folder.folder("twice")
      for (below, point) in [(fixture.main, once), (once, twice)] {
        try Command(
          "mount", "-t", "overlay", "-o", "ro,lowerdir=\(lower.text):\(below.text)", "overlay", point.text
        ).check()
      }
      for (main, isPassedThrough) in [(once, true), (twice, false)] {
        var setup = setup
        setup.main = main
        try withMount(setup) { mount in
          #expect(try (mount.point / "large").read() == Self.large)
          let statistics = try statistics(mount)
          #expect(
            statistics.opened == (isPassedThrough ? 1 : 0) && statistics.refused == (isPassedThrough ? 0 : 1))
          #expect((statistics.reason == nil) == isPassedThrough)
        }
      }
    }

    @Test(
      "without CAP_SYS_ADMIN the daemon prints a message and mounts without passthrough",
      .timeLimit(.minutes(1)))
    func unprivileged() throws {
      let (fixture, options) = try fixture()
      try withOpenDevice {
        var setup = try UnprivilegedTests().userSetup(fixture)
        setup.options = options.options
        let mount = try Mount(setup)
        defer { mount.abandon() }
        let read = try Command(["cat", mount.point / "large"]).asUser(UnprivilegedTests.nobody).check()
        #expect(read.output == Self.large)
        let status = try Command([try #require(setup.binary), "status", mount.point, "--json"])
          .asUser(UnprivilegedTests.nobody).check().outputText
        #expect(status.contains("CAP_SYS_ADMIN"), "\(status)")
        // The kernel sends only the first OPEN.
        #expect(status.contains(#""OPEN":1,"#) && status.contains(#""RELEASE":0"#), "\(status)")
        try mount.unmount()
        #expect(
          mount.process.errorText
            == "bundlefs: mounted without passthrough: it needs the privilege CAP_SYS_ADMIN, which root has\n"
        )
      }
    }

    @Test("without a folder among the layers there is no passthrough", .timeLimit(.minutes(1)))
    func archive() throws {
      let (fixture, options) = try fixture()
      try (fixture.folder / "main.zip").write(ZipBuilder([ZipBuilder.Entry("inside", "text")]).bytes)
      var setup = MountSetup(main: fixture.folder / "main.zip", point: fixture.point)
      setup.options = options.options
      try withMount(setup) { mount in
        #expect(try (mount.point / "inside").readText() == "text")
        let reason = try statistics(mount).reason
        #expect(reason == "no layer is a folder")
      }
    }

    @Test(
      "an invalid size is refused", .timeLimit(.minutes(1)), arguments: ["passthrough=", "passthrough=x"])
    func invalidSize(option: String) throws {
      let (_, setup) = try fixture(ByteString(option))
      let outcome = try setup.command(foreground: false).run(timeout: 20)
      #expect(outcome.status == 2 && outcome.errorText.contains("passthrough=1M"), "\(outcome.errorText)")
    }
  }
}

/// A thread that opens and reads files, and records torn contents.
private final class FileReader: Sendable {
  private let state = Locked((count: 0, faults: [String](), isDone: false))

  init(_ paths: [ByteString], seed: Int, until end: Double) throws {
    let state = self.state
    _ = try Thread(name: "file reader") {
      var random = SplitMix64(seed: UInt64(seed))
      while Clock.now < end {
        let path = paths[Int.random(in: 0..<paths.count, using: &random)]
        let fault = Self.fault(of: path)
        state.withLock { state in
          state.count += 1
          if let fault { state.faults.append(fault) }
        }
      }
      state.withLock { $0.isDone = true }
    }
  }

  private static func fault(of path: ByteString) -> String? {
    do {
      let content = try path.read()
      guard let last = content.last, content.dropLast().allSatisfy({ $0 == ~last }) else {
        return "\(path): \(content.count) bytes of \(Set(content))"
      }
      return nil
    } catch {
      // The old content of a replaced file may be lost before its first READ.
      return (error as? DiskError)?.errno == .staleFileHandle ? nil : "\(path): \(error)"
    }
  }

  /// Waits for the thread and returns its results.
  func result() -> (count: Int, faults: [String]) {
    _ = eventually(within: 30) { state.withLock { $0.isDone } }
    return state.withLock { ($0.count, $0.faults) }
  }
}
