import Glibc
import Posix
import TestSupport
import Testing

/// Signals, and an end that nothing holds up.
extension MountTests.ExclusiveTests {
  @Suite struct SignalTests {
    @Test("signals that mean nothing to the daemon leave the mount alone", .timeLimit(.minutes(1)))
    func strays() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let named = [
          SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGXFSZ, SIGPIPE,
        ]
        for signal in named + [34, 40, 64] { mount.process.signal(signal) }
        try expectFixture(at: mount.point)
        mount.process.signal(SIGHUP)
        try mount.barrier()
        #expect(mount.process.status() == nil)
        try expectFixture(at: mount.point)
      }
    }

    /// How a mount is ended.
    enum End: CaseIterable, Sendable {
      case terminate, terminateTwice, unmount, unmountWithoutCallers
    }

    @Test(
      "a layer that does not answer delays the end by 5 s at most", .timeLimit(.minutes(2)),
      arguments: End.allCases)
    func bounded(end: End) throws {
      let fixture = try Fixture()
      try withStoppableLayer(fixture) { layer, stop in
        var setup = fixture.setup
        setup.main = layer
        let mount = try Mount(setup)
        #expect(try (mount.point / "replaced.txt").readText() == "substitution's replaced, longer\n")
        stop()
        let callers = try ["plain.txt", "folder/inner.txt", "only/deep/file.txt"].map {
          try Child(Command(["cat", mount.point / ByteString($0)]))
        }
        // They have entered the kernel: their requests are what holds the daemon up.
        #expect(eventually(within: 10) { callers.allSatisfy { Self.waits($0.pid) } })
        let start = Clock.now
        try request(end, mount, callers)
        _ = try mount.process.wait(timeout: 20)
        #expect(Clock.now - start < 5.5, "\(Clock.now - start) s")
        #expect(try MountTable.entry(at: mount.point) == nil)
        #expect(eventually(within: 5) { callers.allSatisfy { $0.status() != nil } })
      }
    }

    private func request(_ end: End, _ mount: Mount, _ callers: [Child]) throws {
      let unmount = Command([try Binary.underTest(), "unmount", mount.point])
      switch end {
      case .terminate: mount.process.signal(SIGTERM)
      case .terminateTwice:
        mount.process.signal(SIGTERM)
        mount.process.signal(SIGINT)
      case .unmount: try unmount.check(timeout: 20)
      case .unmountWithoutCallers:
        for caller in callers { caller.signal(SIGKILL) }
        try unmount.check(timeout: 20)
      }
    }

    /// Whether a process waits for a FUSE request, or has failed.
    private static func waits(_ process: pid_t) -> Bool {
      guard let function = try? ByteString("/proc/\(process)/wchan").readText() else { return true }
      return function == "request_wait_answer" || function.hasPrefix("fuse")
    }

    /// Runs the body with MAIN on bindfs, and a function that stops that.
    private func withStoppableLayer(
      _ fixture: Fixture, _ body: (_ layer: ByteString, _ stop: () -> Void) throws -> Void
    ) throws {
      let layer = try fixture.folder.folder("bound")
      let daemon = try Child(Command("bindfs", "-f", fixture.main.text, layer.text))
      defer {
        daemon.signal(SIGCONT)
        MountTable.abandon(layer)
        _ = eventually(within: 5) { daemon.status() != nil }
      }
      #expect(try eventually(within: 10) { try MountTable.entry(at: layer) != nil })
      try body(layer) { daemon.signal(SIGSTOP) }
    }
  }
}
