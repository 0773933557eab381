import Glibc
import Posix
import TestSupport
import Testing

/// What outlives the death of the process that answers requests.
extension MountTests.ExclusiveTests {
  @Suite struct SurvivalTests {
    /// Kills the worker and waits until another process is there.
    @Test("the kernel's table of open files need not grow while threads share it", .timeLimit(.minutes(2)))
    func reservedFiles() throws {
      let fixture = try Fixture()
      let variants: [[ByteString]] = [[], ["survive=off"]]
      for options in variants {
        var setup = fixture.setup
        setup.options = options
        setup.descriptorLimit = 3000
        try withMount(setup) { mount in
          for isSuccessor in options.isEmpty ? [false, true] : [false] {
            if isSuccessor { try mount.killWorker() }
            _ = try mount.point.status()
            let status = try ByteString("/proc/\(mount.worker)/status").readText()
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("FDSize:") })
            let size = try #require(line.split(separator: "\t").last.flatMap { Int($0) })
            #expect(size >= 3000, "\(options) \(isSuccessor)")
          }
        }
      }
    }

    @Test("reads, listings and attributes go on", .timeLimit(.minutes(2)))
    func reading() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let before = try (mount.point / "plain.txt").status()
        for round in 0..<5 {
          try mount.killWorker()
          try ByteString("/proc/sys/vm/drop_caches").write("3")
          #expect(try (mount.point / "plain.txt").read() == (fixture.main / "plain.txt").read())
          #expect(try (mount.point / "plain.txt").status().inode == before.inode)
          let name = ByteString("new \(round)")
          try (fixture.main / name).write("\(round)")
          try mount.barrier()
          #expect(try (mount.point / name).readText() == "\(round)")
          #expect(try mount.point.names().contains(name))
        }
      }
    }

    @Test("a line that is held is run once its program closes the file", .timeLimit(.minutes(2)))
    func heldLine() throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        let url = "x:" + String(repeating: "a", count: 510)
        let file = try Descriptor.open((mount.point / ".routes").bytes, [.write])
        try file.writeInOneCall(Array(url.utf8))
        try mount.killWorker()
        #expect(try mount.routesText().results.dropFirst().map(\.url) == [])
        close(file.release())
        let isRun = try eventually(within: 20) { try mount.lastResult().url == url }
        #expect(isRun)
      }
    }

    @Test("a worker that dies while it starts has a successor, too", .timeLimit(.minutes(2)))
    func earlyDeaths() throws {
      let fixture = try Fixture()
      var random = SplitMix64(seed: 5)
      try withMount(fixture.setup) { mount in
        _ = try mount.point.status()
        for round in 0..<20 {
          var former = mount.worker
          // The holder gives up after ten deaths in a row.
          for _ in 0..<4 {
            kill(former, SIGKILL)
            try #require(eventually(within: 20) { ![former, mount.process.pid].contains(mount.worker) })
            former = mount.worker
            usleep(UInt32.random(in: 0..<3000, using: &random))
          }
          try ByteString("/proc/sys/vm/drop_caches").write("3")
          let name = ByteString("new \(round)")
          try (fixture.main / name).write("\(round)")
          try mount.barrier()
          try expectFixtureContent(at: mount.point)
          #expect(try (mount.point / name).readText() == "\(round)")
        }
        #expect(mount.process.status() == nil)
      }
    }

    private func expectFixtureContent(at point: ByteString) throws {
      for (path, text) in Fixture.content { #expect(try (point / path).readText() == text, "\(path)") }
    }

    @Test("a mount over its own main bundle continues", .timeLimit(.minutes(1)))
    func overMain() throws {
      let fixture = try Fixture()
      let setup = MountSetup(
        main: fixture.main, point: fixture.main, substitutions: [fixture.substitution])
      try withMount(setup) { mount in
        for round in 0..<3 {
          try mount.killWorker()
          try ByteString("/proc/sys/vm/drop_caches").write("3")
          try (fixture.substitution / "new").replace(Array("\(round)".utf8))
          try mount.barrier()
          #expect(try (mount.point / "new").readText() == "\(round)")
          try expectFixtureContent(at: mount.point)
        }
      }
    }

    @Test("an open file that was deleted is read to its end", .timeLimit(.minutes(1)))
    func deletedFile() throws {
      let fixture = try Fixture()
      let content = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
      try (fixture.main / "large").write(content)
      try withMount(fixture.setup) { mount in
        let file = try Descriptor.open((mount.point / "large").bytes, [.read])
        var start = [UInt8](repeating: 0, count: 1000)
        #expect(try start.withUnsafeMutableBytes { try file.read(into: $0, at: 0) } == 1000)
        try (fixture.main / "large").remove()
        try mount.barrier()
        for _ in 0..<3 { try mount.killWorker() }
        #expect(try file.readAll() == content)
        #expect(!(mount.point / "large").exists)
      }
    }

    @Test("a change while no process answers is seen after a barrier", .timeLimit(.minutes(1)))
    func changeMeanwhile() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        for round in 0..<10 {
          let name = ByteString("file")
          _ = try? (mount.point / name).read()
          _ = try mount.point.names()
          mount.signalWorker(SIGKILL)
          if round % 3 == 2 {
            try (fixture.main / name).remove()
          } else {
            try (fixture.main / name).replace(Array("\(round)".utf8))
          }
          try mount.barrier()
          #expect((mount.point / name).exists == (round % 3 != 2))
          if round % 3 != 2 { #expect(try (mount.point / name).readText() == "\(round)") }
        }
      }
    }

    @Test("a shell stays in its folder", .timeLimit(.minutes(1)))
    func workingDirectory() throws {
      let fixture = try Fixture()
      let outcome = try withCwdShell(fixture, in: "folder", first: "ls", then: "cat new && ls ..") {
        let holder = try #require(DaemonMount.processes(serving: fixture.point).first)
        kill(Mount.worker(of: holder), SIGKILL)
        try (fixture.main / "folder" / "new").write("content\n")
      }
      #expect(outcome.outputText.contains("content") && outcome.outputText.contains("plain.txt"))
    }

    @Test(
      "signals to either process, unmounting, and the holder's death end both", .timeLimit(.minutes(1)),
      arguments: [false, true])
    func end(isSuccessor: Bool) throws {
      let ends: [(Mount) throws -> Void] = [
        { kill($0.process.pid, SIGTERM) }, { kill($0.worker, SIGTERM) }, { kill($0.process.pid, SIGKILL) },
        { try Command("umount", $0.point.text).check() },
        { try Command("umount", "-l", $0.point.text).check() },
        { mount in
          let worker = mount.worker
          kill(mount.process.pid, SIGTERM)
          kill(worker, SIGTERM)
        },
      ]
      for end in ends {
        let fixture = try Fixture()
        let mount = try Mount(fixture.setup)
        defer { mount.abandon() }
        _ = try mount.point.names()
        if isSuccessor { try mount.killWorker() }
        let worker = mount.worker
        try end(mount)
        #expect(eventually(within: 20) { mount.process.status() != nil && kill(worker, 0) != 0 })
        #expect(try MountTable.bundlefs(at: mount.point) == nil)
      }
    }

    @Test("the status counts deaths and names the last cause", .timeLimit(.minutes(1)))
    func status() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        #expect(try mount.report().survival?.restarts == 0)
        try mount.killWorker()
        try mount.killWorker()
        #expect(try mount.report().survival?.restarts == 2)
        #expect(try mount.report().survival?.cause == "signal 9")
      }
    }

    @Test("a worker that is sent SIGSEGV continues or has a successor", .timeLimit(.minutes(2)))
    func crash() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        // The handler that prints the backtrace returns once if the signal was sent.
        for _ in 0..<10 where try mount.report().survival?.restarts == 0 {
          mount.signalWorker(SIGSEGV)
          try ByteString("/proc/sys/vm/drop_caches").write("3")
          #expect(try (mount.point / "plain.txt").read() == (fixture.main / "plain.txt").read())
          _ = eventually(within: 5) { (try? mount.report().survival?.restarts) != 0 }
        }
        // It is known once the process has ended, which takes longer than a successor's start on a busy machine.
        #expect(eventually(within: 20) { (try? mount.report().survival?.cause) == "signal 11" })
      }
    }

    @Test("without survival there is one process", .timeLimit(.minutes(1)))
    func off() throws {
      let fixture = try Fixture()
      let mount = try Mount(fixture.setup("survive=off"))
      defer { mount.abandon() }
      #expect(mount.worker == mount.process.pid)
      kill(mount.process.pid, SIGKILL)
      #expect(throws: (any Error).self) { try (mount.point / "plain.txt").read() }
    }
  }
}
