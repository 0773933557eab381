import Glibc
import Posix
import TestSupport
import Testing

/// Mounts whose daemons were killed.
extension MountTests {
  @Suite struct StaleMountTests {
    /// A mount whose daemon is dead.
    /// - Parameter isCached: whether the kernel has cached the root's attributes, which hide the death from stat(2).
    private func staleMount(_ fixture: Fixture, isCached: Bool) throws -> DaemonMount {
      let mount = try DaemonMount(fixture.setup("survive=off"))
      let process = try mount.process()
      // Once as stat(1) does, which asks for the birth time too.
      if isCached { try Command("stat", fixture.point.text).check() }
      kill(process, SIGKILL)
      let isDead = try eventually(within: 10) {
        try errorNumber(of: { try checkFileSystem(fixture.point) }) == .socketNotConnected
      }
      #expect(isDead)
      return mount
    }

    /// Calls statvfs(3), which the kernel does not answer from its caches.
    private func checkFileSystem(_ path: ByteString) throws {
      var result = Glibc.statvfs()
      try path.call("statvfs") { statvfs($0, &result) }
    }

    @Test("the stale mount of a killed daemon is cleared", .timeLimit(.minutes(1)), arguments: [false, true])
    func remounting(isCached: Bool) throws {
      let fixture = try Fixture()
      let dead = try staleMount(fixture, isCached: isCached)
      let mount = try DaemonMount(fixture.setup)
      #expect(mount.outcome.status == 0, "\(mount.outcome.errorText)")
      try expectFixture(at: fixture.point)
      #expect(try MountTable.entries().filter { $0.point == fixture.point }.count == 1)
      try Command([try Binary.underTest(), "unmount", fixture.point]).check()
      #expect(try MountTable.entry(at: fixture.point) == nil)
      withExtendedLifetime(dead) {}
    }

    @Test("a stale mount can be unmounted", .timeLimit(.minutes(1)), arguments: [false, true])
    func unmounting(isCached: Bool) throws {
      let fixture = try Fixture()
      let dead = try staleMount(fixture, isCached: isCached)
      try Command([try Binary.underTest(), "unmount", fixture.point]).check()
      #expect(try MountTable.entry(at: fixture.point) == nil)
      withExtendedLifetime(dead) {}
    }

    @Test("a daemon that does not answer is not taken for a dead one", .timeLimit(.minutes(1)))
    func stopped() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        mount.signalWorker(SIGSTOP)
        let outcome = try fixture.setup.command(foreground: false).run(timeout: 20)
        mount.signalWorker(SIGCONT)
        #expect(outcome.status == 1 && outcome.errorText.contains("busy"), "\(outcome.errorText)")
        #expect(try MountTable.entries().filter { $0.point == fixture.point }.count == 1)
        try expectFixture(at: mount.point)
      }
    }
  }
}
