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
  }
}
