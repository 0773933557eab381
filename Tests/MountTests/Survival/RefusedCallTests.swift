import Glibc
import Posix
import TestSupport
import Testing

/// Mounts where the system refuses what survival needs, as in some containers.
extension MountTests {
  @Suite struct RefusedCallTests {
    @Test(
      "where survival is impossible, the mount works, and says what is lost and why",
      .timeLimit(.minutes(1)),
      arguments: [
        ("memfd_create", "EPERM", "memfd_create(2): Operation not permitted"),
        ("clone3", "ENOSYS", "clone3(2): Function not implemented"),
        ("prctl", "EPERM", "prctl(2) with PR_GET_TID_ADDRESS: Operation not permitted"),
      ])
    func refused(call: String, error: String, cause: String) throws {
      let fixture = try Fixture()
      let setup = fixture.setup
      let command = RefusedCalls.command(try setup.command(foreground: false), without: [call], error)
      let mount = try DaemonMount(command, point: setup.point)
      #expect(mount.outcome.status == 0)
      #expect(
        mount.outcome.errorText.contains("the mount will end with its process: ")
          && mount.outcome.errorText.contains(cause), "\(mount.outcome.errorText)")
      #expect(try (mount.point / "plain.txt").readText() == (fixture.main / "plain.txt").readText())
      let program = try Binary.underTest()
      let status = try Command([program, "status", mount.point]).check().outputText
      #expect(status.contains("the mount ends with its process: ") && status.contains(cause), "\(status)")
      #expect(try Command([program, "unmount", mount.point]).run(timeout: 20).status == 0)
      #expect(try mount.isGone())
    }

    @Test("a mount that was not to survive says nothing of it", .timeLimit(.minutes(1)))
    func unwanted() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["survive=off"]
      let command = RefusedCalls.command(
        try setup.command(foreground: false), without: ["memfd_create"], "EPERM")
      let mount = try DaemonMount(command, point: setup.point)
      #expect(mount.outcome.status == 0 && mount.outcome.errorText.isEmpty, "\(mount.outcome.errorText)")
      let program = try Binary.underTest()
      let status = try Command([program, "status", mount.point]).check().outputText
      #expect(!status.contains("ends with its process"), "\(status)")
      #expect(try Command([program, "unmount", mount.point]).run(timeout: 20).status == 0)
      #expect(try mount.isGone())
    }

    @Test("without procfs, commands name it", .timeLimit(.minutes(1)))
    func noProcfs() throws {
      let fixture = try Fixture()
      let program = try Binary.underTest()
      let commands: [[ByteString]] = [
        [program, fixture.main, fixture.setup.point], [program, "status", fixture.setup.point],
      ]
      for command in commands {
        let outcome = try Command(
          [
            "unshare", "-m", "--propagation", "private", "/bin/bash", "-c",
            "umount -l /proc && \"$@\"; code=$?; umount -l \"${!#}\" 2>/dev/null; exit $code", "bash",
          ] + command
        ).run(timeout: 50)
        #expect(outcome.status == 1)
        #expect(outcome.errorText.contains("procfs is not mounted at /proc"), "\(outcome.errorText)")
      }
    }
  }
}
