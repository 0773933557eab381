import Glibc
import Posix
import TestSupport
import Testing

/// What the command does before it returns, and what its exit status says.
extension MountTests {
  @Suite struct StartTests {
    @Test("the daemon keeps no descriptors of its caller", .timeLimit(.minutes(1)))
    func inheritedDescriptors() throws {
      let fixture = try Fixture()
      let lock = fixture.folder / "lock"
      // The layer's path is resolved before they are closed.
      let script = #"""
        set -e
        exec 9>"$1" 8<"$3"
        flock -n 9
        "$2" /dev/fd/8 "$4" <&- >&- 2>/dev/null
        exec 9>&-
        flock -n "$1" echo free
        """#
      let command = Command.shell(script, lock, try Binary.underTest(), fixture.main, fixture.point)
      let mount = try DaemonMount(command, point: fixture.point)
      #expect(mount.outcome.status == 0 && mount.outcome.outputText == "free\n", "\(mount.outcome.errorText)")
      #expect(try (fixture.point / "plain.txt").readText() == "main's plain\n")
      try Command([try Binary.underTest(), "unmount", fixture.point]).check(timeout: 20)
      #expect(try mount.isGone())
    }

    @Test("a pipe that the caller waits for ends when the mount is usable", .timeLimit(.minutes(1)))
    func pipes() throws {
      let fixture = try Fixture()
      // As Foundation's Process does, with a further descriptor.
      let script = #"exec 7> >(cat); out=$("$@" 2>&1 7>&7); echo "done $out"; exec 7>&-; wait"#
      let words: [ByteString] = [try Binary.underTest(), fixture.main, fixture.point]
      let mount = try DaemonMount(
        Command(["bash", "-c", ByteString(script), "bash"] + words), point: fixture.point, timeout: 20)
      #expect(mount.outcome.outputText == "done \n")
      try Command([try Binary.underTest(), "unmount", fixture.point]).check(timeout: 20)
      #expect(try mount.isGone())
    }

    @Test(
      "where the daemon cannot start, the status is 1 and nothing is mounted", .timeLimit(.minutes(1)),
      arguments: [
        ("-n 16", "a mount needs 64 open files"), ("-n 64", "cannot mount at"),
        // Threads of the mount before may still count: then not even the background process can be started.
        ("-u 8", "cannot "),
      ])
    func limits(limit: String, message: String) throws {
      let fixture = try Fixture()
      try withOpenDevice {
        let setup = try UnprivilegedTests().userSetup(fixture)
        let program = try #require(setup.binary)
        // Unlike root, other users are subject to a limit of processes; `games` has none, and a name.
        let games: UInt32 = 5
        try fixture.point.setOwner(games, group: games)
        let command = Command.shell(
          "ulimit \(limit) && exec \"$1\" \"$2\" \"$3\"", program, fixture.main, fixture.point
        ).asUser(games)
        let mount = try DaemonMount(command, point: fixture.point, timeout: 20)
        if mount.outcome.status == 0 {
          // Enough on this machine: then it is mounted.
          #expect(try MountTable.bundlefs(at: fixture.point) != nil)
        } else {
          #expect(mount.outcome.status == 1)
          #expect(mount.outcome.errorText.contains("bundlefs: " + message), "\(mount.outcome.errorText)")
          #expect(try mount.isGone())
        }
      }
    }

    @Test("of four mounts at once at one point, one succeeds", .timeLimit(.minutes(2)))
    func concurrent() throws {
      let fixture = try Fixture()
      for _ in 0..<5 {
        let commands = try (0..<4).map { _ in try Child(fixture.setup.command(foreground: false)) }
        let outcomes = try commands.map { try $0.wait(timeout: 30) }
        #expect(outcomes.filter { $0.status == 0 }.count == 1)
        for outcome in outcomes where outcome.status != 0 {
          #expect(outcome.status == 1 && outcome.errorText.contains("busy"), "\(outcome.errorText)")
        }
        #expect(try MountTable.entries().filter { $0.point == fixture.point }.count == 1)
        try expectFixture(at: fixture.point)
        try Command([try Binary.underTest(), "unmount", fixture.point]).check(timeout: 20)
      }
      let isEnded = eventually(within: 20) { DaemonMount.processes(serving: fixture.point).isEmpty }
      #expect(isEnded)
    }

    @Test("a mount point in procfs is refused", .timeLimit(.minutes(1)))
    func processDirectory() throws {
      let fixture = try Fixture()
      let outcome = try Command([try Binary.underTest(), fixture.main, "/proc/self"]).run(timeout: 20)
      #expect(outcome.status == 1 && outcome.errorText.contains("procfs"), "\(outcome.errorText)")
    }
  }
}
