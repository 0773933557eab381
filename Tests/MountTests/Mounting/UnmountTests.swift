import Glibc
import Posix
import TestSupport
import Testing

/// The end of a mount.
extension MountTests {
  @Suite struct UnmountTests {
    /// Mounts in the background.
    private func mount(_ setup: MountSetup) throws {
      try setup.command(foreground: false).check()
    }

    @Test(
      "when 'unmount' returns, the mount's processes have ended and the work folder is gone",
      .timeLimit(.minutes(3)), arguments: [[], ["survive=off"]] as [[ByteString]])
    func workFolder(options: [ByteString]) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["writable"] + options
      defer { MountTable.abandon(setup.point) }
      for round in 0..<20 {
        try mount(setup)
        try (setup.point / "new").write("\(round)")
        try (setup.point / "plain.txt").write("\(round)")
        let status = try Command([Binary.underTest(), "status", "--json", setup.point]).check().outputText
        let process = try #require(Self.process(status))
        #expect(kill(process, 0) == 0)
        try Command([Binary.underTest(), "unmount", setup.point]).check()
        // A process without a parent that waits for it stays dead for a moment.
        let state = (try? ByteString("/proc/\(process)/stat").readText())?.split(separator: ")").last?.prefix(
          2)
        #expect(state == nil || state == " Z", "round \(round): \(state ?? "")")
        let names = try fixture.substitution.names()
        #expect(names == ["folder", "new", "plain.txt", "replaced.txt"], "round \(round)")
      }
    }

    private static func process(_ status: String) -> pid_t? {
      status.firstRange(of: "\"process\":{\"id\":").flatMap { found in
        pid_t(String(status[found.upperBound...].prefix { $0.isNumber }))
      }
    }

    @Test(
      "'umount -f' of a bind mount ends the mount with a message, and leaves no dead one",
      .timeLimit(.minutes(1)),
      arguments: [[], ["writable"]] as [[ByteString]])
    func abort(options: [ByteString]) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = options
      let mount = try Mount(setup)
      defer { mount.abandon() }
      let part = fixture.folder / "part"
      try part.makeDirectory()
      try Command("mount", "--bind", (mount.point / "folder").text, part.text).check()
      try Command("umount", "-f", part.text).check()
      #expect(eventually(within: 20) { mount.process.status() == 0 })
      #expect(mount.process.errorText.contains("\(mount.point): unmounted: the connection was aborted"))
      #expect(try MountTable.bundlefs(at: mount.point) == nil)
      #expect(try mount.point.names() == [])
      #expect(try fixture.substitution.names() == ["folder", "replaced.txt"])
    }

    @Test("'unmount' does not wait for a copy of the mount elsewhere", .timeLimit(.minutes(1)))
    func copyElsewhere() throws {
      let fixture = try Fixture()
      let mount = try Mount(fixture.setup)
      defer { mount.abandon() }
      let holder = try Child(
        Command(["unshare", "-m", "--propagation", "private", "sleep", "100"]))
      defer { try? holder.kill() }
      let hasCopy = eventually(within: 20) {
        (try? ByteString("/proc/\(holder.pid)/mounts").readText().contains(mount.point.text)) == true
          && (try? ByteString("/proc/\(holder.pid)/ns/mnt").linkTarget())
            != (try? ByteString("/proc/self/ns/mnt").linkTarget())
      }
      #expect(hasCopy)
      let begin = TimeSpec.monotonic
      try Command([Binary.underTest(), "unmount", mount.point]).check()
      // It would wait for 10 s.
      #expect(TimeSpec.monotonic.milliseconds(since: begin) < 8000)
      #expect(try MountTable.bundlefs(at: mount.point) == nil && mount.process.status() == nil)
      try holder.kill()
      try mount.waitForEnd()
    }

    @Test("a mount and 'run' that fail without /dev/fuse leave no work folder", .timeLimit(.minutes(1)))
    func withoutDevice() throws {
      let fixture = try Fixture()
      let script = """
        mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec "$@"
        """
      for words in [
        ["run", "-o", "writable,substitution=" + fixture.substitution, fixture.main, "--", "true"],
        [fixture.main, fixture.point, "-o", "writable,substitution=" + fixture.substitution],
      ] as [[ByteString]] {
        let command = Command(
          ["unshare", "-m", "bash", "-c", ByteString(script), "bash", try Binary.underTest()] + words)
        let outcome = try command.run()
        #expect(outcome.status != 0 && outcome.errorText.contains("/dev/fuse"), "\(outcome.errorText)")
        let isGone = eventually(within: 10) {
          (try? fixture.substitution.names()) == ["folder", "replaced.txt"]
        }
        #expect(isGone)
      }
    }

    @Test(
      "umount(8) is never busy because of the mount's own announcements", .timeLimit(.minutes(10)))
    func neverBusy() throws {
      let fixture = try Fixture()
      let archive = fixture.folder / "top.zip"
      var setup = fixture.setup
      setup.substitutions = [fixture.substitution, archive]
      setup.options = ["writable"]
      var random = SplitMix64(seed: 41)
      try archive.write(ZipBuilder([.init("packed", "0")]).bytes)
      defer { MountTable.abandon(setup.point) }
      for round in 0..<200 {
        try mount(setup)
        for name in ["plain.txt", "replaced.txt", "packed", "folder/added.txt"] as [ByteString] {
          _ = try (setup.point / name).read()
        }
        _ = try (setup.point / "folder").names()
        try change(fixture, archive, round, &random)
        if round % 4 == 0 { try Command([Binary.underTest(), "sync", setup.point]).check() }
        usleep(UInt32.random(in: 0..<30_000, using: &random))
        if round % 4 == 1 {
          try Command(["umount", setup.point]).check()
        } else {
          // What umount(8) does, without the time that the program takes to start.
          try #require(umount2(setup.point.text, 0) == 0, "round \(round): \(Errno.current)")
        }
      }
    }

    /// Changes files in the layers, replaces the archive, and writes through the mount.
    private func change(
      _ fixture: Fixture, _ archive: ByteString, _ round: Int, _ random: inout SplitMix64
    ) throws {
      for number in 0..<20 {
        try (fixture.main / "folder" / ByteString("many\(number)")).write("\(round)")
      }
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        let number = Int.random(in: 0..<5, using: &random)
        switch number {
        case 0: try (fixture.main / "plain.txt").write("round \(round)\n")
        case 1: try (fixture.main / "folder" / ByteString("new\(round % 7)")).write("x")
        case 2: try archive.replace(ZipBuilder([.init("packed", "\(round)"), .init("more", "x")]).bytes)
        case 3: try (fixture.point / "replaced.txt").write("written \(round)\n")
        default: try (fixture.substitution / "folder/added.txt").replace(Array("round \(round)\n".utf8))
        }
      }
    }
  }
}
