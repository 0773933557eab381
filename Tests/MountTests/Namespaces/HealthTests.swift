import FoundationEssentials
import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs health`, and what `status` and `list` answer where something hangs.
extension MountTests {
  @Suite struct HealthTests {
    private struct Report: Decodable {
      let mountPoint: String
      let state: String
      let reasons: [String]
    }

    /// A little more than the promised two seconds: starting a process takes a while, too.
    private static let limit = 2.5

    /// The exit status, the reports and the seconds.
    private func health(_ words: ByteString...) throws -> (status: Int, reports: [Report], seconds: Double) {
      let start = TimeSpec.monotonic
      let outcome = try Command([try Binary.underTest(), "health", "--json"] + words).run(timeout: 20)
      let seconds = Double(TimeSpec.monotonic.milliseconds(since: start)) / 1000
      let reports = try JSONDecoder().decode([Report].self, from: Data(outcome.output))
      return (outcome.status, reports, seconds)
    }

    @Test("a healthy mount, by any path within", .timeLimit(.minutes(1)))
    func healthy() throws {
      let fixture = try Fixture()
      let program = try Binary.underTest()
      try withMount(fixture.setup) { mount in
        let link = fixture.folder / "link"
        try link.makeLink(to: mount.point / "folder")
        for path in [mount.point, mount.point / "folder/both.txt", mount.point / ".routes", link] {
          let found = try health(path)
          #expect(found.status == 0 && found.reports.map(\.state) == ["healthy"], "\(path): \(found.reports)")
          #expect(found.reports.first?.mountPoint == mount.point.text && found.reports.first?.reasons == [])
          let status = try Command([program, "status", path]).check().outputText
          #expect(status.contains("  \(fixture.main)\n"), "\(status)")
        }
        let inside = try Command([program, "health", "."], directory: mount.point / "folder").check()
        #expect(inside.outputText == "\(mount.point): healthy\n")
        let all = try Command([program, "health", "--all"]).run()
        #expect(all.outputText.contains("\(mount.point): healthy\n"), "\(all.outputText)")
      }
    }

    @Test("a layer that is missing, or cannot be watched, degrades the mount", .timeLimit(.minutes(1)))
    func layers() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try Command("rm", "-r", fixture.substitution.text).check()
        try expectEventually { try health(mount.point).status == 1 }
        let found = try health(mount.point)
        #expect(found.reports[0].state == "degraded")
        #expect(found.reports[0].reasons.contains { $0.hasPrefix("\(fixture.substitution): ") })
      }
      try fixture.substitution.makeDirectory()
      let inner = try Mount(MountSetup(main: fixture.substitution, point: try fixture.folder.folder("inner")))
      let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [inner.point])
      try withMount(setup) { mount in
        let found = try health(mount.point, inner.point)
        #expect(found.status == 1 && found.reports.map(\.state) == ["degraded", "healthy"])
        #expect(found.reports[0].reasons.first?.contains("FUSE does not report all changes") == true)
      }
      try inner.unmount()
    }

    @Test("a layer that does not answer degrades the mount, and delays no answer", .timeLimit(.minutes(1)))
    func stalledLayer() throws {
      let fixture = try Fixture()
      var setup = MountSetup(main: fixture.main, point: try fixture.folder.folder("inner"))
      setup.options = ["cache=none", "watchdog=off"]
      let layer = try Mount(setup)
      defer { layer.signalWorker(SIGCONT) }
      let outer = MountSetup(main: layer.point, point: fixture.point, substitutions: [fixture.substitution])
      try withMount(outer) { mount in
        try expectFixture(at: mount.point)
        layer.signalWorker(SIGSTOP)
        defer { layer.signalWorker(SIGCONT) }
        let child = try Child(Command("cat", (mount.point / "plain.txt").text))
        try expectEventually {
          try health(mount.point).reports[0].reasons.contains { $0.contains("does not answer, since") }
        }
        let found = try health(mount.point / "only/deep", layer.point)
        #expect(found.status == 2 && found.reports.map(\.state) == ["degraded", "dead"])
        #expect(found.seconds < Self.limit)
        for command in [["status", mount.point], ["list"]] as [[ByteString]] {
          let start = TimeSpec.monotonic
          let outcome = try Command([try Binary.underTest()] + command).check()
          #expect(outcome.outputText.contains("does not answer, since"), "\(command): \(outcome.outputText)")
          #expect(Double(TimeSpec.monotonic.milliseconds(since: start)) / 1000 < Self.limit)
        }
        layer.signalWorker(SIGCONT)
        #expect(try child.wait(timeout: 20).outputText == "main's plain\n")
      }
      try layer.unmount()
    }

    @Test("a worker that dies again and again degrades the mount", .timeLimit(.minutes(1)))
    func restarts() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        for _ in 0..<2 { try mount.killWorker() }
        _ = try mount.point.names()
        #expect(try health(mount.point).status == 0)
        try mount.killWorker()
        _ = try mount.point.names()
        let found = try health(mount.point)
        #expect(found.status == 1, "\(found.reports)")
        let reason =
          "its worker process was restarted 3 times within 10 minutes, the last time after signal 9"
        #expect(found.reports[0].reasons == [reason])
      }
    }

    @Test("dead, stopped and covered mounts, and others, are dead", .timeLimit(.minutes(1)))
    func dead() throws {
      let fixture = try Fixture()
      let other = try health(fixture.main, fixture.folder / "nowhere")
      #expect(other.status == 2 && other.reports.map(\.state) == ["dead", "dead"])
      #expect(other.reports[0].reasons == ["no bundlefs is mounted there"])

      let dead = try DaemonMount(fixture.setup("survive=off"))
      kill(try dead.process(), SIGKILL)
      let isDead = try eventually(within: 10) {
        try health(fixture.point).reports.first?.reasons == ["its daemon is dead"]
      }
      #expect(isDead)

      // Two that hang are asked at the same time.
      let points = try (0..<2).map { try fixture.folder.folder(ByteString("stopped\($0)")) }
      let mounts = try points.map { point in
        var setup = fixture.setup("watchdog=off")
        setup.point = point
        return try Mount(setup)
      }
      for mount in mounts { _ = try mount.point.status() }
      for mount in mounts { mount.signalWorker(SIGSTOP) }
      defer { for mount in mounts { mount.signalWorker(SIGCONT) } }
      let found = try health(points[0], points[1] / "not/cached", fixture.point / "x")
      #expect(found.status == 2 && found.reports.map(\.state) == ["dead", "dead", "dead"])
      #expect(found.reports.map(\.mountPoint) == (points + [fixture.point]).map(\.text))
      #expect(found.reports.prefix(2).allSatisfy { $0.reasons == ["its daemon does not answer"] })
      #expect(found.seconds < Self.limit)
      for command in [["list"], ["status", points[0] / "not/cached"], ["health", "--all"]] as [[ByteString]] {
        let start = TimeSpec.monotonic
        _ = try Command([try Binary.underTest()] + command).run(timeout: 20)
        #expect(Double(TimeSpec.monotonic.milliseconds(since: start)) / 1000 < Self.limit, "\(command)")
      }
      for mount in mounts { mount.signalWorker(SIGCONT) }
      try Command("mount", "-t", "tmpfs", "none", points[0].text).check()
      let covered = try health(points[0])
      try Command("umount", points[0].text).check()
      #expect(covered.status == 2 && covered.reports[0].reasons == ["covered by another mount"])
      for mount in mounts { try mount.unmount() }
      try Command([try Binary.underTest(), "unmount", fixture.point]).check()
    }

    @Test("root asks a user's mount; other users may not", .timeLimit(.minutes(1)))
    func users() throws {
      let fixture = try Fixture()
      try UnprivilegedTests().withUserMount(fixture) { mount, program in
        #expect(try health(mount.point / "folder").status == 0)
        let status = try Command([program, "status", mount.point]).check().outputText
        #expect(status.contains("  \(fixture.main)\n"), "\(status)")
        let other = try Command([program, "health", mount.point]).asUser(12345).run()
        #expect(other.status == 2 && other.outputText.contains("cannot be asked"), "\(other.outputText)")
        let all = try Command([program, "health", "--all"]).asUser(12345).run()
        #expect(!all.outputText.contains(mount.point.text), "\(all.outputText)")
      }
    }
  }
}
