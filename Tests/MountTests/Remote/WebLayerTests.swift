import Glibc
import Posix
import TestSupport
import Testing

/// Layers that are archives on a web server.
extension MountTests {
  @Suite(.serialized, .enabled(if: NginxServer.isInstalled)) struct WebLayerTests {
    private func noise(_ size: Int, _ seed: UInt64) -> [UInt8] {
      var random = SplitMix64(seed: seed)
      return (0..<size).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    /// Waits until a file has a content.
    private func isSeen(_ content: String, in file: ByteString) -> Bool {
      eventually(within: 30) { (try? file.readText()) == content }
    }

    @Test("a zip archive on a server is a layer, and so is a folder in it", .timeLimit(.minutes(2)))
    func zip() throws {
      let server = try NginxServer()
      let (large, packed) = (noise(3_000_000, 1), [UInt8](repeating: 7, count: 500_000))
      let zip = ZipBuilder([
        .init("Data/a", "first"), .init("Data/large", large), .init("Data/packed", packed, .deflated),
      ])
      try server.replace("app.zip", by: zip.bytes, version: 0)
      let setup = try server.setup([server.url("app.zip!/Data")])
      try withMount(setup) { mount in
        #expect(try (mount.point / "a").readText() == "first")
        #expect(try (mount.point / "large").read() == large)
        #expect(try (mount.point / "packed").read() == packed)
        #expect(try (mount.point / "own").readText() == "own")
        let status = try mount.command("status").outputText
        #expect(status.contains("read by ranges"), "\(status)")
      }
      // Without the server, what is cached can be mounted and read.
      try server.stop()
      var offline = setup
      offline.options += ["layer_timeout=2"]
      try withMount(offline) { mount in
        #expect(try (mount.point / "large").read() == large)
        let status = try mount.command("status").outputText
        #expect(status.contains("the server does not answer"), "\(status)")
      }
    }

    @Test(
      "queries and users are shown nowhere, and colons of URLs separate no layers", .timeLimit(.minutes(2)))
    func secrets() throws {
      let server = try NginxServer()
      for (name, entry) in [("app.zip", "a"), ("b.zip", "b"), ("c.zip", "c")] {
        let zip = ZipBuilder([.init(ByteString(entry), "content of " + entry)])
        try server.replace(ByteString(name), by: zip.bytes, version: 0)
      }
      let first = "http://me:hidden1@127.0.0.1:\(server.port)/app.zip?signature=hidden2"
      let list = "substitution=\(first)!/:\(server.folder / "main"):\(server.url("b.zip"))@/Place"
      var setup = try server.setup([], [ByteString(list)])
      setup.main = server.url("c.zip?signature=hidden3")
      try withMount(setup) { mount in
        #expect(try (mount.point / "a").readText() == "content of a")
        #expect(try (mount.point / "Place/b").readText() == "content of b")
        #expect(try (mount.point / "own").readText() == "own")
        for shown in [
          try mount.command("status").outputText, try mount.command("status", "--json").outputText,
          try mount.command("layers").outputText, try ByteString("/proc/self/mountinfo").readText(),
          mount.process.errorText,
        ] {
          #expect(!shown.contains("hidden"), "\(shown)")
        }
        // A layer is known by its shown name, and its query is kept.
        let moved = try mount.command("layers", "move", server.url("app.zip?..."), "--bottom")
        #expect(moved.status == 0, "\(moved)")
        #expect(try (mount.point / "a").readText() == "content of a")
        let added = try mount.command("layers", "add", server.url("b.zip?hidden4"))
        #expect(added.status == 0, "\(added)")
        #expect(try (mount.point / "b").readText() == "content of b")
        let none = server.url("none.zip?hidden5")
        let refused = try Command([try Binary.underTest(), "layers", mount.point, "add", none]).run()
        #expect(refused.status == 1 && refused.errorText.contains("no such file"), "\(refused)")
        #expect(!refused.errorText.contains("hidden"), "\(refused)")
        let log = try (mount.point / ".routes").readText()
        #expect(!log.contains("hidden"), "\(log)")
      }
    }

    @Test("a file URL is the path that it names", .timeLimit(.minutes(1)))
    func file() throws {
      let server = try NginxServer()
      try server.replace("a b.zip", by: ZipBuilder([.init("d/a", "first")]).bytes, version: 0)
      let url = ByteString("file://") + server.folder.path + "/files/a%20b.zip!/d"
      try withMount(try server.setup([url])) { mount in
        #expect(try (mount.point / "a").readText() == "first")
        let layer = try #require(try mount.report().layers.first)
        #expect(layer.path == (server.files / "a b.zip!/d").text)
      }
    }

    @Test(
      "tar and 7z archives, and servers without ranges", .timeLimit(.minutes(2)),
      arguments: ["tar", "tar.gz", "7z", "zip"], ["", "max_ranges 0;"])
    func formats(format: String, directives: String) throws {
      let server = try NginxServer(directives)
      let files = try server.folder.folder("in")
      let large = noise(2_000_000, 2)
      try (files / "a").write("first")
      try (files / "large").write(large)
      let script: ByteString =
        switch format {
        case "7z": "7z a -bd ../x.7z a large >/dev/null && mv ../x.7z ../files/x"
        case "zip": "python3 -m zipfile -c ../files/x a large"
        case "tar.gz": "tar czf ../files/x a large"
        default: "tar cf ../files/x a large"
        }
      try Command(["bash", "-c", "cd \"$0\" && " + script, files]).check()
      try withMount(try server.setup([server.url("x")])) { mount in
        #expect(try (mount.point / "a").readText() == "first")
        #expect(try (mount.point / "large").read() == large)
        let status = try mount.command("status").outputText
        #expect(status.contains("downloaded as a whole") == !directives.isEmpty, "\(status)")
      }
    }

    @Test(
      "a replaced archive shows, and one that is not on the server any more goes on being served",
      .timeLimit(.minutes(2)))
    func replaced() throws {
      let server = try NginxServer()
      try server.replace("app.zip", by: ZipBuilder([.init("a", "first")]).bytes, version: 0)
      try withMount(try server.setup([server.url("app.zip")])) { mount in
        let file = mount.point / "a"
        #expect(try file.readText() == "first")
        let second = ZipBuilder([.init("a", "other"), .init("b", "")])
        try server.replace("app.zip", by: second.bytes, version: 1)
        #expect(isSeen("other", in: file))
        #expect((mount.point / "b").exists)
        try (server.files / "app.zip").remove()
        let isReported = try eventually(within: 30) {
          try mount.command("status").outputText.contains("has no such file")
        }
        #expect(isReported)
        #expect(try file.readText() == "other")
        try server.replace("app.zip", by: ZipBuilder([.init("a", "third")]).bytes, version: 2)
        #expect(isSeen("third", in: file))
      }
    }

    @Test("the worker that takes over after kill -9 goes on with the same files", .timeLimit(.minutes(2)))
    func killed() throws {
      let server = try NginxServer()
      let large = noise(3_000_000, 3)
      let zip = ZipBuilder([.init("a", "first"), .init("large", large)])
      try server.replace("app.zip", by: zip.bytes, version: 0)
      try withMount(try server.setup([server.url("app.zip?sig=1")])) { mount in
        let file = mount.point / "large"
        let inode = try file.status().inode
        try file.withOpen(O_RDONLY) { file in
          mount.signalWorker(SIGKILL)
          var byte: UInt8 = 0
          #expect(pread(file, &byte, 1, 0) == 1)
        }
        #expect(try file.read() == large)
        #expect(try file.status().inode == inode)
        try server.replace("app.zip", by: ZipBuilder([.init("a", "other")]).bytes, version: 1)
        #expect(isSeen("other", in: mount.point / "a"))
      }
    }

    @Test(
      "a server that is away makes only what is not cached wait, and is used again", .timeLimit(.minutes(3)))
    func away() throws {
      let server = try NginxServer()
      let large = noise(6_000_000, 4)
      // The table of contents is at the end, with the small entry.
      let zip = ZipBuilder([.init("large", large), .init("small", "small")])
      try server.replace("app.zip", by: zip.bytes, version: 0)
      try withMount(try server.setup([server.url("app.zip")], ["layer_timeout=2"])) { mount in
        let file = mount.point / "large"
        try server.stop()
        #expect(try (mount.point / "small").readText() == "small")
        #expect((try? file.read()) == nil)
        #expect(try (mount.point / "small").readText() == "small")
        try server.start()
        let isBack = eventually(within: 60) { (try? file.read()) == large }
        #expect(isBack)
      }
    }

    @Test(
      "an archive of 10,000 entries is mounted, and its first entry read, by three requests",
      .timeLimit(.minutes(2)))
    func requests() throws {
      let server = try NginxServer()
      let filler = String(repeating: "-", count: 500)
      let zip = ZipBuilder(
        (0..<10_000).map { .init(ByteString("folder\($0 % 100)/entry\($0)"), "content of \($0)" + filler) })
      try server.replace("app.zip", by: zip.bytes, version: 0)
      var setup = try server.setup([server.url("app.zip")])
      setup.options = []
      try withMount(setup) { mount in
        let text = try (mount.point / "folder42/entry5042").readText()
        #expect(text.hasPrefix("content of 5042-"))
        let requests = server.requests.filter { $0.contains("GET") }
        #expect(requests.count <= 3, "\(requests)")
      }
    }

    @Test(
      "while an archive on the server is replaced, readers see one state or another",
      .timeLimit(.minutes(5)), arguments: Seeds.chosen(TestLength.of(full: 12, brief: 2)))
    func random(seed: UInt64) throws {
      let server = try NginxServer()
      // Each file has one byte throughout, that of the version.
      func archive(_ version: Int) -> [UInt8] {
        func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: UInt8(version % 251), count: count) }
        return ZipBuilder([
          .init("stored", bytes(700_000)), .init("large", bytes(3_000_000)),
          .init("packed", bytes(2_000_000), .deflated), .init("small", bytes(100)),
        ]).bytes
      }
      var random = SplitMix64(seed: seed)
      try server.replace("app.zip", by: archive(0), version: 0)
      try withMount(try server.setup([server.url("app.zip")])) { mount in
        let isStopping = Locked(false)
        let readers = try (0..<3).map { _ in
          try LoopThread("web reader", until: isStopping) { _ in
            for name: ByteString in ["stored", "large", "packed", "small"] {
              guard let bytes = try? (mount.point / name).read(), let first = bytes.first else { continue }
              if !bytes.allSatisfy({ $0 == first }) { throw TestFailure("\(name) has bytes of two states") }
            }
          }
        }
        defer {
          isStopping.withLock { $0 = true }
          _ = eventually(within: 60) { readers.allSatisfy(\.isFinished) }
        }
        for version in 1...TestLength.steps(full: 30, brief: 8) {
          try server.replace("app.zip", by: archive(version), version: version)
          Clock.sleep(Double.random(in: 0..<0.3, using: &random))
          if Int.random(in: 0..<3, using: &random) == 0 {
            let small = mount.point / "small"
            let isShown = eventually(within: 30) { (try? small.read())?.first == UInt8(version % 251) }
            #expect(isShown, "version \(version)")
          }
          for reader in readers { if let failure = reader.failure { Issue.record("\(failure)") } }
        }
        #expect(readers.allSatisfy { $0.iterations > 0 }, "a reader made no progress")
      }
    }
  }
}
