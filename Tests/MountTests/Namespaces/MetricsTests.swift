import Foundation
import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs metrics`.
extension MountTests {
  @Suite struct MetricsTests {
    private func metrics(_ words: ByteString...) throws -> [Substring] {
      let outcome = try Command([try Binary.underTest(), "metrics"] + words).check(timeout: 20)
      return outcome.outputText.split(separator: "\n")
    }

    private func value(_ sample: String, _ lines: [Substring]) throws -> Int {
      let line = try #require(lines.first { $0.hasPrefix(sample + " ") }, "\(sample)")
      return try #require(Int(line.split(separator: " ").last ?? ""))
    }

    @Test(
      "counts what reaches the daemon, and tells a dead mount from a healthy one", .timeLimit(.minutes(1)))
    func counters() throws {
      let fixture = try Fixture()
      let other = try Mount(MountSetup(main: fixture.main, point: try fixture.folder.folder("other")))
      try withMount(fixture.setup) { mount in
        let mounts = [mount.point, other.point].map { "{mountpoint=\"\($0)\"}" }
        let before = try metrics(mount.point, other.point / "folder")
        for label in mounts { #expect(try value("bundlefs_health\(label)", before) == 0) }
        let reads = "bundlefs_requests_total{mountpoint=\"\(mount.point)\",kind=\"lookup\"}"
        for name in ["plain.txt", "replaced.txt"] as [ByteString] { _ = try (mount.point / name).status() }
        let after = try metrics(mount.point, other.point)
        #expect(try value(reads, after) >= value(reads, before) + 2)
        #expect(try value("bundlefs_nodes\(mounts[0])", after) >= 3)
        let answered = "bundlefs_request_duration_seconds_count\(mounts[0])"
        #expect(try value(answered, after) >= value(answered, before) + 2)
        other.signalWorker(SIGSTOP)
        defer { other.signalWorker(SIGCONT) }
        let stopped = try metrics("--all")
        #expect(try value("bundlefs_health\(mounts[0])", stopped) == 0)
        #expect(try value("bundlefs_health\(mounts[1])", stopped) == 2)
        #expect(!stopped.contains { $0.hasPrefix("bundlefs_nodes\(mounts[1])") })
        #expect(stopped.last == "# EOF")
      }
      try other.unmount()
    }

    @Test("the board for Grafana asks for samples that there are", .timeLimit(.minutes(1)))
    func board() throws {
      let board = try (Installation.scripts / "share/grafana/bundlefs.json").readText()
      let object = try #require(JSONSerialization.jsonObject(with: Data(board.utf8)) as? [String: Any])
      let panels = try #require(object["panels"] as? [[String: Any]])
      let asked = panels.flatMap { ($0["targets"] as? [[String: Any]]) ?? [] }.compactMap {
        $0["expr"] as? String
      }
      try #require(asked.count >= panels.count)
      let fixture = try Fixture()
      let archive = fixture.folder / "layer.zip"
      try archive.write(ZipBuilder([.init("inside.txt", "content")]).bytes)
      var setup = fixture.setup
      setup.substitutions.append(archive)
      let names = try withMount(setup) { mount in
        Set(try metrics(mount.point).map { $0.prefix { $0 != "{" } })
      }
      for name in asked.flatMap({ $0.matches(of: /bundlefs_[a-z_]+/) }).map(\.output) {
        #expect(names.contains(name), "\(name)")
      }
    }

    @Test("replaces a file as a whole", .timeLimit(.minutes(1)))
    func output() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let file = fixture.folder / "out/bundlefs.prom"
        try file.parent.makeDirectory()
        try file.write("former\n")
        let former = try file.status().inode
        #expect(try metrics(mount.point, "--output", file).isEmpty)
        #expect(try file.status().inode != former)
        #expect(try file.readText().hasSuffix("# EOF\n"))
        #expect(try file.parent.names() == ["bundlefs.prom"])
        #expect(try file.status().permissions == 0o644)
        let lost = try Command([
          try Binary.underTest(), "metrics", mount.point, "--output", fixture.folder / "none/x.prom",
        ]).run()
        #expect(lost.status == 1 && lost.errorText.contains("none/x.prom: "))
      }
    }
  }
}
