import Glibc
import Posix
import TestSupport
import Testing

/// Mounts by and for unprivileged users.
extension MountTests {
  @Suite struct UnprivilegedTests {
    static let nobody: UInt32 = 65534

    @Test("an unprivileged user mounts through fusermount3, reads and unmounts", .timeLimit(.minutes(1)))
    func unprivileged() throws {
      let fixture = try Fixture()
      try (fixture.main / "secret").write("root's own")
      try (fixture.main / "secret").setMode(0o600)
      try withOpenDevice {
        try withMount(try userSetup(fixture)) { mount in
          let user = Command(["cat", mount.point / "replaced.txt", mount.point / "plain.txt"]).asUser(
            Self.nobody)
          #expect(try user.check().outputText == "substitution's replaced, longer\nmain's plain\n")
          try Command.shell(
            "find \"$1\" ! -name secret -type f -exec cat {} + && ls -laR \"$1\"", mount.point
          )
          .asUser(Self.nobody).check(timeout: 20)
          // A file that the user may not read in the layer is unreadable in the mount.
          let secret = try Command(["cat", mount.point / "secret"]).asUser(Self.nobody).run()
          #expect(secret.status != 0 && secret.errorText.contains("denied"))
        }
      }
    }

    @Test(
      "an unprivileged user mounts inside MAIN and over MAIN", .timeLimit(.minutes(1)),
      arguments: ["only/deep", ""])
    func unprivilegedInsideMain(path: String) throws {
      let fixture = try Fixture()
      try withOpenDevice {
        var setup = try userSetup(fixture)
        setup.point = path.isEmpty ? fixture.main : fixture.main / ByteString(path)
        setup.lifetime = 45
        try withMount(setup) { mount in
          let walk = try Command.shell("find \"$1\" -type f -exec cat {} + && ls -laR \"$1\"", mount.point)
            .asUser(Self.nobody).check(timeout: 20)
          #expect(walk.outputText.contains("substitution's both"))
          #expect(walk.outputText.contains("deep\n"))
        }
      }
    }

    @Test("without allow_other only the mounting user has access, not even root", .timeLimit(.minutes(1)))
    func noOthers() throws {
      let fixture = try Fixture()
      try withOpenDevice {
        try withMount(try userSetup(fixture)) { mount in
          try expectErrno(.permissionDenied, "root") { _ = try (mount.point / "plain.txt").status() }
          let other = try Command(["cat", mount.point / "plain.txt"]).asUser(12345).run()
          #expect(other.status != 0)
        }
      }
      try withMount(fixture.setup) { mount in
        try expectFixture(at: mount.point)
        let other = try Command(["cat", mount.point / "plain.txt"]).asUser(Self.nobody).run()
        #expect(other.status != 0 && other.errorText.contains("denied"))
      }
    }

    @Test("with allow_other other users have the access that modes allow", .timeLimit(.minutes(1)))
    func others() throws {
      let fixture = try Fixture()
      try (fixture.main / "secret").write("root's own")
      try (fixture.main / "secret").setMode(0o600)
      try (fixture.main / "closed").makeDirectory(mode: 0o700)
      try withMount(fixture.setup("allow_other")) { mount in
        let read = Command(["cat", mount.point / "plain.txt"]).asUser(Self.nobody)
        #expect(try read.check().outputText == "main's plain\n")
        let secret = try Command(["cat", mount.point / "secret"]).asUser(Self.nobody).run()
        #expect(secret.status != 0 && secret.errorText.contains("denied"))
        let closed = try Command(["ls", mount.point / "closed"]).asUser(Self.nobody).run()
        #expect(closed.status != 0 && closed.errorText.contains("denied"))
        try expectFixtureContent(at: mount.point)
      }
    }

    @Test(
      "allow_other by an unprivileged user requires user_allow_other in fuse.conf", .timeLimit(.minutes(1)))
    func allowOtherByUser() throws {
      let fixture = try Fixture()
      let configuration = (try? ByteString("/etc/fuse.conf").readText()) ?? ""
      let isAllowed = configuration.split(separator: "\n").contains { $0 == "user_allow_other" }
      try withOpenDevice {
        var setup = try userSetup(fixture)
        setup.options = ["allow_other"]
        if isAllowed {
          try withMount(setup) { try expectFixture(at: $0.point) }
        } else {
          let outcome = try setup.command(foreground: true).run(timeout: 20)
          #expect(outcome.status == 1)
          #expect(outcome.errorText.contains("allow_other"), "\(outcome.errorText)")
          #expect(try MountTable.entry(at: fixture.point) == nil)
        }
      }
    }

    @Test("a mount point that the user cannot write is refused", .timeLimit(.minutes(1)))
    func foreignMountPoint() throws {
      let fixture = try Fixture()
      try withOpenDevice {
        var setup = try userSetup(fixture)
        setup.point = try fixture.folder.folder("foreign")
        let outcome = try setup.command(foreground: true).run(timeout: 20)
        #expect(outcome.status == 1)
        #expect(outcome.errorText.contains(setup.point.text), "\(outcome.errorText)")
        #expect(try MountTable.entry(at: setup.point) == nil)
      }
    }

    /// A mount by the user `nobody`, who owns the folders. The program is copied to where that user can execute it.
    func userSetup(_ fixture: Fixture) throws -> MountSetup {
      let program = fixture.folder / "bundlefs"
      try Command("cp", try Binary.underTest().text, program.text).check()
      try program.setMode(0o755)
      for folder in [fixture.main, fixture.substitution, fixture.point] {
        try Command("chown", "-Rh", "--from=root", "\(Self.nobody)", folder.text).check()
      }
      if (fixture.main / "secret").exists { try (fixture.main / "secret").setOwner(0, group: 0) }
      var setup = fixture.setup
      setup.user = Self.nobody
      setup.binary = program
      return setup
    }

    /// Runs the body with a mount as `userSetup` describes it, and the program that has made it.
    func withUserMount(
      _ fixture: Fixture, _ body: (_ mount: Mount, _ program: ByteString) throws -> Void
    ) throws {
      try withOpenDevice {
        let setup = try userSetup(fixture)
        let program = try #require(setup.binary)
        try withMount(setup) { try body($0, program) }
      }
    }

    private func expectFixtureContent(at point: ByteString) throws {
      for (path, text) in Fixture.content { #expect(try (point / path).readText() == text) }
    }
  }
}

/// Runs the body while /dev/fuse has mode 666, as udev sets it; containers often restrict it to root.
func withOpenDevice(_ body: () throws -> Void) throws {
  let device: ByteString = "/dev/fuse"
  // Another process of the tests may do the same, or mount as the same user.
  let lock = try device.call("open") { open($0, O_RDONLY | O_CLOEXEC) }
  defer { close(lock) }
  guard flock(lock, LOCK_EX) == 0 else { throw DiskError("flock", device, .current) }
  let before = try device.status().permissions
  try device.setMode(0o666)
  defer { try? device.setMode(before) }
  try body()
}
