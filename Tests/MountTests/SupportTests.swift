import Glibc
import Posix
import TestSupport
import Testing

/// The test support itself: every test ends and leaves nothing behind, whatever fails.
extension MountTests {
  @Suite struct SupportTests {
    private struct BodyError: Error {}

    @Test("a failing test leaves no mount, process or folder", .timeLimit(.minutes(1)))
    func failingTest() throws {
      var path: ByteString = ""
      var process: pid_t = 0
      do {
        let fixture = try Fixture()
        path = fixture.folder.path
        #expect(throws: BodyError.self) {
          try withMount(fixture.setup) { mount in
            process = mount.process.pid
            throw BodyError()
          }
        }
      }
      #expect(!path.exists)
      #expect(kill(process, 0) == -1)
      #expect(try !MountTable.entries().contains { $0.point.hasPrefix(path) })
    }

    @Test("the watchdog ends a hung mount", .timeLimit(.minutes(1)))
    func hangingMount() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.lifetime = 2
      let mount = try Mount(setup)
      mount.signalWorker(SIGSTOP)
      let start = Clock.now
      // The stopped daemon never replies; the kernel fails the request when the daemon is killed.
      let error = try errorNumber { _ = try (mount.point / "plain.txt").status() }
      #expect(
        error == .socketNotConnected || error == Errno(rawValue: ECONNABORTED), "\(String(describing: error))"
      )
      #expect(Clock.now - start < 20)
      mount.abandon()
      #expect(try MountTable.entry(at: fixture.point) == nil)
    }

    @Test("a child process is killed after its timeout", .timeLimit(.minutes(1)))
    func endlessChild() throws {
      #expect(throws: TestFailure.self) { try Command("sleep", "1000").run(timeout: 0.3) }
    }
  }
}
