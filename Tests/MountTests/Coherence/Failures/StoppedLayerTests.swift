import Glibc
import Posix
import TestSupport
import Testing

/// A layer on FUSE whose server is stopped, and so does not answer.
extension MountTests {
  @Suite struct StoppedLayerTests {
    @Test("changes in the other layers are seen, and barriers return", .timeLimit(.minutes(1)))
    func otherLayers() throws {
      let fixture = try Fixture()
      let inner = try fixture.folder.folder("inner")
      let override = fixture.folder / "override"
      try (override / "local").makeDirectories()
      try (override / "local/file").write("before\n")
      var innerSetup = MountSetup(main: fixture.main, point: inner)
      innerSetup.options = ["cache=none"]
      try withMount(innerSetup) { innerMount in
        let setup = MountSetup(main: inner, point: fixture.point, substitutions: [override])
        try withMount(setup) { mount in
          try mount.warmCaches()
          innerMount.signalWorker(SIGSTOP)
          defer { innerMount.signalWorker(SIGCONT) }
          for round in 0..<3 {
            let text = String(repeating: "after \(round)\n", count: round + 1)
            try (override / "local/file").write(text)
            try mount.command("sync", timeout: 20)
            try expectEventually { try (mount.point / "local/file").readText() == text }
          }
          innerMount.signalWorker(SIGCONT)
          try expectEventually { try (mount.point / "plain.txt").readText() == "main's plain\n" }
        }
      }
    }
  }
}
