import Glibc
import Posix
import TestSupport
import Testing

/// What a mount tells the service manager that started it.
extension MountTests {
  @Suite struct ServiceManagerTests {
    @Test(
      "it says when it is ready, also after a death and an upgrade, and when it ends",
      .timeLimit(.minutes(2)), arguments: [true, false])
    func states(isAbstract: Bool) throws {
      let fixture = try Fixture()
      let manager = try NotificationSocket(Self.address(fixture, isAbstract: isAbstract))
      var setup = fixture.setup()
      setup.environment = ["NOTIFY_SOCKET": manager.address.text]
      try withMount(setup) { mount in
        #expect(manager.hasMessage(with: "STATUS=Serving \(mount.point)"))
        #expect(
          manager.messages == ["READY=1\nMAINPID=\(mount.process.pid)\nSTATUS=Serving \(mount.point)\n"])
        try mount.killWorker()
        #expect(manager.hasMessage(with: "STATUS=Serving \(mount.point); worker processes that have died: 1"))
        try mount.command("upgrade")
        #expect(manager.hasMessage(with: "RELOADING=1"))
        let isReady = eventually(within: 20) {
          manager.messages.last?.hasPrefix("READY=1\nMAINPID=\(mount.process.pid)\n") == true
        }
        #expect(isReady, "\(manager.messages)")
        #expect(!manager.messages.contains { $0.contains("WATCHDOG") || $0.contains("STOPPING") })
      }
      #expect(manager.messages.last == "STOPPING=1\nSTATUS=Unmounted \(fixture.point)\n")
    }

    @Test("it names the daemon as the main process, and one without a holder", .timeLimit(.minutes(1)))
    func daemon() throws {
      let fixture = try Fixture()
      for options in [[], ["survive=off"]] as [[ByteString]] {
        let manager = try NotificationSocket(Self.address(fixture, isAbstract: true))
        var setup = fixture.setup()
        setup.options += options
        setup.environment = ["NOTIFY_SOCKET": manager.address.text]
        let mount = try DaemonMount(setup)
        #expect(mount.outcome.status == 0, "\(mount.outcome.errorText)")
        // It was sent before the command returned.
        let main = "MAINPID=\(try mount.process())\n"
        #expect(manager.messages.first?.contains(main) == true)
        try Command([try Binary.underTest(), "unmount", fixture.point]).check()
        #expect(try mount.isGone())
      }
    }

    @Test("signs of life come while the worker runs, and stop with it", .timeLimit(.minutes(1)))
    func watchdog() throws {
      let fixture = try Fixture()
      let manager = try NotificationSocket(Self.address(fixture, isAbstract: false))
      var setup = fixture.setup()
      setup.options.append("watchdog=off")
      setup.environment = ["NOTIFY_SOCKET": manager.address.text, "WATCHDOG_USEC": "20000"]
      try withMount(setup) { mount in
        func count() -> Int { manager.messages.filter { $0 == "WATCHDOG=1\n" }.count }
        #expect(eventually(within: 20) { count() > 3 })
        mount.signalWorker(SIGSTOP)
        let stopped = count()
        #expect(usleep(100_000) == 0 && count() == stopped)
        mount.signalWorker(SIGCONT)
        #expect(eventually(within: 20) { count() > stopped })
      }
    }

    @Test(
      "'run' leaves the messages to its program, and a wrong socket loses nothing", .timeLimit(.minutes(1)))
    func others() throws {
      let fixture = try Fixture()
      let manager = try NotificationSocket(Self.address(fixture, isAbstract: true))
      var run = Command([
        try Binary.underTest(), "run", fixture.main, "-o", "substitution=" + fixture.substitution, "--",
        "/bin/true",
      ])
      run.environment = ["NOTIFY_SOCKET": manager.address.text]
      try run.check()
      #expect(manager.messages.isEmpty)
      var setup = fixture.setup()
      setup.environment = ["NOTIFY_SOCKET": (fixture.folder / "missing").text, "WATCHDOG_USEC": "x"]
      try withMount(setup) { mount in
        let names = try mount.names()
        #expect(names.contains("plain.txt"))
        let warning = "the service manager (NOTIFY_SOCKET) cannot be reached: No such file or directory"
        #expect(eventually(within: 20) { mount.process.errorText.contains(warning) })
      }
    }

    private static func address(_ fixture: borrowing Fixture, isAbstract: Bool) -> ByteString {
      isAbstract ? "@bundlefs-tests" + fixture.folder.path : fixture.folder / "notify"
    }
  }
}
