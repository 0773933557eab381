import Glibc
import Posix
import TestSupport
import Testing

/// Mounting and unmounting.
extension MountTests {
  @Suite struct MountingTests {
    @Test("a foreground mount lasts until `bundlefs unmount`", .timeLimit(.minutes(1)))
    func foreground() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try expectFixture(at: mount.point)
        #expect(try MountTable.bundlefs(at: mount.point)?.source == fixture.main)
      }
      #expect(try MountTable.entry(at: fixture.point) == nil)
    }

    @Test("a daemon's mount is usable once the command returns", .timeLimit(.minutes(2)))
    func daemon() throws {
      let fixture = try Fixture()
      for _ in 0..<10 {
        let mount = try DaemonMount(fixture.setup)
        // Immediately, without waiting.
        let isMounted = (fixture.point / "plain.txt").exists
        #expect(mount.outcome.status == 0, "\(mount.outcome.errorText)")
        #expect(isMounted)
        #expect(mount.outcome.errorText == "" && mount.outcome.outputText == "")
        try expectFixture(at: fixture.point)
        try Command([try Binary.underTest(), "unmount", fixture.point]).check(timeout: 20)
        #expect(try mount.isGone())
      }
    }

    @Test("a daemon keeps no terminal, working directory or output of its caller", .timeLimit(.minutes(1)))
    func detached() throws {
      let fixture = try Fixture()
      let start = try fixture.folder.folder("start")
      var command = try fixture.setup.command(foreground: false)
      command.directory = start
      let mount = try DaemonMount(command, point: fixture.point)
      #expect(mount.outcome.status == 0, "\(mount.outcome.errorText)")
      let process = ByteString("/proc/\(try mount.process())")
      #expect(try (process / "cwd").linkTarget() == "/")
      for number in ["0", "1", "2"] as [ByteString] {
        #expect(try (process / "fd" / number).linkTarget() == "/dev/null")
      }
      // A descriptor of the folder beneath the mount would prevent automounts from expiring.
      for number in try (process / "fd").names() {
        #expect((try? (process / "fd" / number).linkTarget()) != fixture.point, "descriptor \(number)")
      }
    }

    @Test("max_read limits the size of READ requests", .timeLimit(.minutes(1)))
    func maxRead() throws {
      let fixture = try Fixture()
      let content = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
      try (fixture.main / "large").write(content)
      try withMount(fixture.setup("max_read=8192")) { mount in
        let seen = try (mount.point / "large").read()
        let reads = RequestCounts(try mount.report())["READ"]
        #expect(seen == content && reads >= 100_000 / 8192, "\(reads) reads")
      }
    }

    @Test("relative paths resolve against the working directory", .timeLimit(.minutes(1)))
    func relativePaths() throws {
      let fixture = try Fixture()
      try (fixture.folder / "passwords").write("secret")
      let command = Command(
        [
          try Binary.underTest(), "main", "./mount/", "-o",
          "substitution=substitution,archive_password_file=passwords",
        ],
        directory: fixture.folder.path)
      let mount = try DaemonMount(command, point: fixture.point)
      #expect(mount.outcome.status == 0, "\(mount.outcome.errorText)")
      try expectFixture(at: fixture.point)
      try Command([try Binary.underTest(), "unmount", "mount"], directory: fixture.folder.path).check()
      #expect(try MountTable.entry(at: fixture.point) == nil)
    }

    @Test("SIGTERM and SIGINT unmount cleanly", .timeLimit(.minutes(1)), arguments: [SIGTERM, SIGINT])
    func signals(signal: CInt) throws {
      let fixture = try Fixture()
      let mount = try Mount(fixture.setup)
      try expectFixture(at: mount.point)
      mount.process.signal(signal)
      try mount.waitForEnd()
      #expect(try MountTable.entry(at: fixture.point) == nil)
      #expect(mount.process.errorText == "")

      let daemon = try DaemonMount(fixture.setup)
      #expect(daemon.outcome.status == 0)
      kill(try daemon.process(), signal)
      #expect(try daemon.isGone())
    }

    @Test("a mount point in use is refused, and its mount stays", .timeLimit(.minutes(1)))
    func alreadyMounted() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let outcome = try fixture.setup.command(foreground: true).run(timeout: 20)
        #expect(outcome.status == 1)
        #expect(outcome.errorText.contains(fixture.point.text), "\(outcome.errorText)")
        #expect(outcome.errorText.split(separator: "\n").count == 1)
        #expect(try MountTable.entries().filter { $0.point == fixture.point }.count == 1)
        try expectFixture(at: mount.point)
      }
    }

    @Test("mount(8) mounts and umount(8) unmounts", .timeLimit(.minutes(1)))
    func mountCommand() throws {
      let fixture = try Fixture()
      let programs = try fixture.folder.folder("programs")
      try (programs / "bundlefs").makeLink(to: try Binary.underTest())
      // mount(8) removes PATH from its helpers' environment, so that the shell finds `bundlefs` only in system
      // folders. A private mount namespace replaces one of them.
      let script = #"""
        set -e
        mount --bind "$1" /usr/local/bin
        mount -t fuse.bundlefs "$2" "$3" -o "substitution=$4,nosuid,x-test.mark" 2>&1
        findmnt -n -o FSTYPE,SOURCE "$3"
        cat "$3/replaced.txt" "$3/plain.txt"
        umount "$3"
        ls "$3"
        """#
      let command = Command([
        "unshare", "--mount", "bash", "-c", ByteString(script), "bash", programs, fixture.main, fixture.point,
        fixture.substitution,
      ])
      let mount = try DaemonMount(command, point: fixture.point)
      #expect(mount.outcome.status == 0, "\(mount.outcome.errorText)\(mount.outcome.outputText)")
      let entry = "fuse.bundlefs \(fixture.main.text)\n"
      #expect(mount.outcome.outputText == entry + "substitution's replaced, longer\nmain's plain\n")
      #expect(try mount.isGone())
    }

    @Test("folder names may contain option separators", .timeLimit(.minutes(1)))
    func escapedNames() throws {
      let fixture = try Fixture()
      let odd = fixture.folder / #"a,b:c\d e"#
      try odd.makeDirectory()
      try (odd / "plain.txt").write("odd's plain\n")
      let oddMain = fixture.folder / #"m,n:o\p q"#
      try fixture.main.rename(to: oddMain)
      let oddPoint = fixture.folder / #"x,y:z\ w"#
      try oddPoint.makeDirectory()
      let setup = MountSetup(main: oddMain, point: oddPoint, substitutions: [odd, fixture.substitution])
      try withMount(setup) { mount throws in
        #expect(try (mount.point / "plain.txt").readText() == "odd's plain\n")
        #expect(try (mount.point / "folder/both.txt").readText() == "substitution's both\n")
        #expect(try (mount.point / "folder/inner.txt").readText() == "main's inner\n")
      }
    }

    @Test("without a substitution the mount shows MAIN unchanged", .timeLimit(.minutes(1)))
    func mainAlone() throws {
      let fixture = try Fixture()
      try withMount(MountSetup(main: fixture.main, point: fixture.point)) { mount in
        try Command(
          "diff", "-r", "--no-dereference", fixture.main.text, mount.point.text
        ).check()
      }
    }
  }
}
