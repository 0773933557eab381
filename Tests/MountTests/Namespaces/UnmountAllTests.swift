import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs unmount --all`, by a user that has no other mounts.
extension MountTests {
  @Suite struct UnmountAllTests {
    @Test("unmounts the caller's mounts and prints a line for each", .timeLimit(.minutes(1)))
    func all() throws {
      let fixture = try Fixture()
      try withOpenDevice {
        let setup = try UnprivilegedTests().userSetup(fixture)
        let program = try #require(setup.binary)
        let mounts = try mounts(setup, fixture)
        var foreign = fixture.setup
        foreign.point = try fixture.folder.folder("root's")
        try withMount(foreign) { kept in
          let outcome = try unmountAll(program)
          #expect(outcome.status == 0, "\(outcome.errorText)")
          let lines = mounts.reversed().map { "\($0.point): unmounted\n" }
          #expect(outcome.outputText == lines.joined())
          for mount in mounts { #expect(try mount.isGone()) }
          #expect(try MountTable.bundlefs(at: kept.point) != nil)
          #expect(try unmountAll(program).outputText == "")
        }
      }
    }

    @Test("continues after a mount that is busy, and fails", .timeLimit(.minutes(1)))
    func busy() throws {
      let fixture = try Fixture()
      try withOpenDevice {
        let setup = try UnprivilegedTests().userSetup(fixture)
        let program = try #require(setup.binary)
        let mounts = try mounts(setup, fixture)
        let user = try Child(
          .shell("cd \"$1\" && exec sleep 60", mounts[1].point / "folder").asUser(UnprivilegedTests.nobody))
        let isThere = eventually(within: 20) {
          (try? ("/proc" / ByteString("\(user.pid)") / "cwd").linkTarget()) == mounts[1].point / "folder"
        }
        #expect(isThere)
        let outcome = try unmountAll(program)
        #expect(outcome.status == 1)
        #expect(outcome.outputText == "\(mounts[2].point): unmounted\n\(mounts[0].point): unmounted\n")
        #expect(outcome.errorText.contains("\(mounts[1].point): busy"), "\(outcome.errorText)")
        let lazy = try unmountAll(program, "--lazy")
        #expect(lazy.status == 0 && lazy.outputText == "\(mounts[1].point): unmounted\n")
        try user.kill()
        for mount in mounts { #expect(try mount.isGone()) }
      }
    }

    @Test("takes no mount point", .timeLimit(.minutes(1)))
    func usage() throws {
      let outcome = try Command([try Binary.underTest(), "unmount", "--all", "/tmp"]).run()
      #expect(outcome.status == 2 && outcome.errorText.contains("--all"))
    }

    /// Three mounts by the user, oldest first.
    private func mounts(_ setup: MountSetup, _ fixture: Fixture) throws -> [DaemonMount] {
      try ["a", "b", "c"].map { name in
        var setup = setup
        setup.point = try fixture.folder.folder(ByteString(name))
        try setup.point.setOwner(UnprivilegedTests.nobody, group: UnprivilegedTests.nobody)
        let mount = try DaemonMount(setup)
        try #require(mount.outcome.status == 0, "\(mount.outcome.errorText)")
        return mount
      }
    }

    private func unmountAll(_ program: ByteString, _ options: ByteString...) throws -> Outcome {
      try Command([program, "unmount", "--all"] + options).asUser(UnprivilegedTests.nobody).run(timeout: 30)
    }
  }
}
