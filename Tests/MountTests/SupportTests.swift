import Glibc
import Posix
import TestSupport
import Testing

/// The tests' own promises: whatever goes wrong, each test ends and leaves nothing behind.
extension MountTests {
  @Suite struct SupportTests {
    private struct Wrong: Error {}

    @Test("a test that fails leaves neither mount nor process nor folder", .timeLimit(.minutes(1)))
    func failingTest() throws {
      var path: ByteString = ""
      var process: pid_t = 0
      do {
        let fixture = try Fixture()
        path = fixture.folder.path
        #expect(throws: Wrong.self) {
          try withMount(fixture.setup) { mount in
            process = mount.process.pid
            throw Wrong()
          }
        }
      }
      #expect(!path.exists)
      #expect(kill(process, 0) == -1)
      #expect(try !MountTable.entries().contains { $0.point.hasPrefix(path) })
    }

    @Test("a mount that hangs is ended by the watchdog", .timeLimit(.minutes(1)))
    func hangingMount() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.lifetime = 2
      let mount = try Mount(setup)
      mount.process.signal(SIGSTOP)
      let start = Clock.now
      // Never answered by the daemon, but failed by the kernel when the daemon is killed.
      let error = try errorNumber { _ = try (mount.point / "plain.txt").status() }
      #expect(
        error == .socketNotConnected || error == Errno(rawValue: ECONNABORTED), "\(String(describing: error))"
      )
      #expect(Clock.now - start < 20)
      mount.abandon()
      #expect(try MountTable.entry(at: fixture.point) == nil)
    }

    @Test("a child that does not end is killed", .timeLimit(.minutes(1)))
    func endlessChild() throws {
      #expect(throws: TestFailure.self) { try Command("sleep", "1000").run(timeout: 0.3) }
    }
  }
}
