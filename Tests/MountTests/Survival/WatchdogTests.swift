import Glibc
import Posix
import TestSupport
import Testing

/// Workers that hang.
extension MountTests {
  @Suite struct WatchdogTests {
    @Test("a worker that is stopped is replaced, and what waits for it is answered", .timeLimit(.minutes(2)))
    func replacement() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["watchdog=1"]
      try withMount(setup) { mount in
        let file = try Descriptor.open((mount.point / "plain.txt").bytes, [.read])
        let content = try file.readAll()
        try (fixture.main / "plain.txt").remove()
        for round in 1...2 {
          let former = mount.worker
          try #require(former != mount.process.pid, "there is no holder")
          mount.signalWorker(SIGSTOP)
          try (fixture.main / ByteString("new \(round)")).write("\(round)")
          #expect(try (mount.point / ByteString("new \(round)")).readText() == "\(round)")
          #expect(mount.worker != former)
          #expect(try file.readAll() == content)
          let survival = try #require(try mount.report().survival)
          #expect(survival.hangs == round && survival.restarts == round && survival.cause == "signal 9")
        }
      }
    }

    @Test("commands end with a message while the worker is stopped", .timeLimit(.minutes(3)))
    func commands() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["watchdog=off"]
      try withMount(setup) { mount in
        _ = try mount.point.status()
        let (worker, program, point) = (mount.worker, try Binary.underTest(), mount.point)
        let commands: [[ByteString]] = [
          ["status"], ["status", "--json"], ["layers"], ["sync"], ["invalidate"], ["upgrade"], ["diff"],
          ["tree"], ["resources"], ["listen"], ["route", "x:1"], ["match", "x:1"], ["override", "plain.txt"],
          ["revert", "plain.txt", "--yes"], ["layers", "remove", "1"],
        ]
        mount.signalWorker(SIGSTOP)
        defer { kill(worker, SIGCONT) }
        for words in commands {
          let outcome = try Command([program, words[0], point] + words.dropFirst()).run(timeout: 20)
          #expect(
            outcome.status == 1 && outcome.errorText.contains("its daemon does not answer"),
            "\(words): \(outcome.status) \(outcome.errorText)")
        }
        kill(worker, SIGCONT)
        #expect(try (point / "plain.txt").readText() == "main's plain\n")
        #expect(mount.worker == worker)
        let status = try mount.report()
        #expect(status.survival?.hangs == 0 && status.options["watchdog"] == "off")
      }
    }
  }
}
