import Glibc
import Posix
import TestSupport
import Testing

/// Layers that do not answer, as a network file system whose server is gone.
extension MountTests {
  @Suite struct UnresponsiveLayerTests {
    /// A layer on FUSE whose daemon can be stopped.
    private struct StallingLayer: ~Copyable {
      let backing: ByteString
      let folder: ByteString
      private let mount: Mount

      init(_ backing: ByteString, at folder: ByteString) throws {
        self.backing = backing
        self.folder = folder
        var setup = MountSetup(main: backing, point: folder)
        setup.options = ["cache=none"]
        mount = try Mount(setup)
      }

      func stop() { mount.signalWorker(SIGSTOP) }
      func resume() { mount.signalWorker(SIGCONT) }

      // A stopped daemon would keep every process that waits for it from being killed.
      deinit { resume() }
    }

    /// Runs the body with a mount whose main layer can be stopped.
    private func withStallingMain(
      _ options: ByteString..., body: (Mount, Fixture, borrowing StallingLayer) throws -> Void
    ) throws {
      let fixture = try Fixture()
      let layer = try StallingLayer(fixture.main, at: try fixture.folder.folder("inner"))
      var setup = MountSetup(main: layer.folder, point: fixture.point, substitutions: [fixture.substitution])
      setup.options = options
      try withMount(setup) { mount in
        try expectFixture(at: mount.point)
        try body(mount, fixture, layer)
        layer.resume()
      }
    }

    /// Runs the body with a mount whose substitution can be stopped.
    private func withStallingSubstitution(
      _ body: (Mount, Fixture, borrowing StallingLayer) throws -> Void
    ) throws {
      let fixture = try Fixture()
      let layer = try StallingLayer(fixture.substitution, at: try fixture.folder.folder("inner"))
      let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [layer.folder])
      try withMount(setup) { mount in try body(mount, fixture, layer) }
    }

    private func read(_ path: ByteString) throws -> String {
      try Command("cat", path.text).run(timeout: 20).outputText
    }

    @Test("what healthy layers have is read while another does not answer", .timeLimit(.minutes(1)))
    func healthyContent() throws {
      try withStallingMain { mount, fixture, layer in
        layer.stop()
        for _ in 0..<3 {
          #expect(try read(mount.point / "replaced.txt") == "substitution's replaced, longer\n")
          #expect(try read(mount.point / "folder/both.txt") == "substitution's both\n")
          #expect(try read(mount.point / "folder/added.txt") == "substitution's added\n")
        }
        // Changes of healthy layers are seen, and a barrier waits for no other.
        try (fixture.substitution / "replaced.txt").write("changed\n")
        try mount.barrier()
        #expect(try read(mount.point / "replaced.txt") == "changed\n")
        // Nor does it keep the last known state from being used.
        try Command([try Binary.underTest(), "invalidate", mount.point]).check(timeout: 20)
        #expect(try read(mount.point / "replaced.txt") == "changed\n")
        #expect(try read(mount.point / "folder/both.txt") == "substitution's both\n")
      }
    }

    @Test(
      "what healthy layers have is read after a death while another does not answer", .timeLimit(.minutes(1)))
    func healthyContentAfterDeath() throws {
      try withStallingMain { mount, _, layer in
        layer.stop()
        for _ in 0..<2 {
          try kill(workerOf: mount)
          #expect(try read(mount.point / "replaced.txt") == "substitution's replaced, longer\n")
          #expect(try read(mount.point / "folder/both.txt") == "substitution's both\n")
          #expect(try read(mount.point / "folder/added.txt") == "substitution's added\n")
        }
        layer.resume()
        try expectFixture(at: mount.point)
      }
    }

    private func kill(workerOf mount: Mount) throws {
      let former = mount.worker
      mount.signalWorker(SIGKILL)
      try expectEventually { mount.worker != former && mount.worker != mount.process.pid }
      // The successor has invalidated the kernel's caches.
      try mount.barrier()
    }

    @Test(
      "open files of the main layer are read after a death while a substitution does not answer",
      .timeLimit(.minutes(1)))
    func openFileAfterDeath() throws {
      try withStallingSubstitution { mount, fixture, layer in
        let (opened, go) = (fixture.folder.path / "opened", fixture.folder.path / "go")
        let script = "exec <$1; : >$2; while ! test -e $3; do sleep 0.01; done; exec cat"
        let reader = try Child(
          Command("sh", "-c", script, "sh", (mount.point / "plain.txt").text, opened.text, go.text))
        try expectEventually { opened.exists }
        layer.stop()
        try kill(workerOf: mount)
        try go.write("")
        #expect(try reader.wait(timeout: 20).outputText == "main's plain\n")
        layer.resume()
        try expectFixture(at: mount.point)
      }
    }

    @Test(
      "the root and the control file answer after a death while a substitution does not",
      .timeLimit(.minutes(1)))
    func rootAfterDeath() throws {
      try withStallingSubstitution { mount, _, layer in
        try expectFixture(at: mount.point)
        layer.stop()
        try kill(workerOf: mount)
        // The layer's time limit is 30 s.
        #expect(try Command("stat", mount.point.text).run(timeout: 15).status == 0)
        let write = #"echo 'route First s:A' > "$1/.routes" && cat "$1/.routes""#
        #expect(
          try Command.shell(write, mount.point).run(timeout: 15).outputText.hasPrefix("route First s:A\n"))
        layer.resume()
        try expectFixture(at: mount.point)
      }
    }

    @Test("programs that wait for a layer can be killed", .timeLimit(.minutes(1)))
    func killing() throws {
      try withStallingMain { mount, _, layer in
        layer.stop()
        let commands = [
          ["cat", "plain.txt"], ["cat", "only/deep/file.txt"], ["ls", ""], ["ls", "-l", "folder"],
          ["stat", "link"],
        ]
        // More than the layer has threads.
        for signal in [SIGTERM, SIGINT, SIGKILL] {
          for words in commands + commands {
            let path = mount.point / ByteString(words[words.count - 1])
            let child = try Child(Command(words.dropLast().map { ByteString($0) } + [path]))
            try expectEventually { try isBlocked(child) || child.status() != nil }
            child.signal(signal)
            #expect(try child.wait(timeout: 5).status == 128 + Int(signal), "\(words)")
          }
        }
        layer.resume()
        try expectFixture(at: mount.point)
      }
    }

    /// Whether a process waits for a reply to a request, or for a page that one brings.
    private func isBlocked(_ child: Child) throws -> Bool {
      let function = try ("/proc" / ByteString("\(child.pid)") / "wchan").readText()
      return function == "request_wait_answer" || function.contains("folio")
    }

    @Test(
      "beyond layer_timeout, requests fail with EIO, and succeed once the layer answers",
      .timeLimit(.minutes(1)))
    func timeout() throws {
      try withStallingMain("layer_timeout=0.5") { mount, _, layer in
        layer.stop()
        for _ in 0..<3 {
          let outcome = try Command("cat", (mount.point / "plain.txt").text).run(timeout: 20)
          #expect(outcome.status == 1 && outcome.errorText.contains("Input/output error"))
        }
        #expect(try read(mount.point / "folder/both.txt") == "substitution's both\n")
        layer.resume()
        try expectEventually { try read(mount.point / "plain.txt") == "main's plain\n" }
        try expectFixture(at: mount.point)
      }
    }

    @Test(
      "with layer_timeout_action=skip, names fall through until the layer answers", .timeLimit(.minutes(1)))
    func skipping() throws {
      let fixture = try Fixture()
      let layer = try StallingLayer(fixture.substitution, at: try fixture.folder.folder("inner"))
      var setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [layer.folder])
      setup.options = ["layer_timeout=0.5", "layer_timeout_action=skip"]
      try withMount(setup) { mount in
        try expectFixture(at: mount.point)
        layer.stop()
        try expectEventually { try read(mount.point / "replaced.txt") == "main's replaced\n" }
        try expectEventually { try read(mount.point / "folder/inner.txt") == "main's inner\n" }
        let names = try Command("ls", (mount.point / "folder").text).run(timeout: 20).outputText
        #expect(names == "both.txt\ninner.txt\n")
        layer.resume()
        try expectEventually { try read(mount.point / "replaced.txt") == "substitution's replaced, longer\n" }
        try expectEventually { try read(mount.point / "folder/added.txt") == "substitution's added\n" }
        try mount.barrier()
        try expectFixture(at: mount.point)
      }
    }

    @Test("status names the layer that does not answer", .timeLimit(.minutes(1)))
    func status() throws {
      try withStallingMain { mount, _, layer in
        #expect(try mount.report().layers.allSatisfy { $0.unresponsive == nil })
        layer.stop()
        let child = try Child(Command("cat", (mount.point / "plain.txt").text))
        try expectEventually { try mount.report().layers[1].unresponsive != nil }
        #expect(try mount.report().layers[0].unresponsive == nil)
        layer.resume()
        #expect(try child.wait(timeout: 20).outputText == "main's plain\n")
        try expectEventually { try mount.report().layers[1].unresponsive == nil }
      }
    }

    @Test("a disk that hangs holds up only what it has", .timeLimit(.minutes(1)))
    func hangingDisk() throws {
      let fixture = try Fixture()
      let images = try fixture.folder.folder("images")
      let layer = try StallingLayer(images, at: try fixture.folder.folder("inner"))
      let disk = try fixture.folder.folder("disk")
      try Command("truncate", "-s", "16M", (images / "image").text).check()
      try Command("mkfs.ext4", "-q", "-F", (images / "image").text).check()
      try Command("mount", "-o", "loop", (images / "image").text, disk.text).check()
      for number in 0..<40 { try (disk / ByteString("file\(number)")).write("on the disk\n") }
      try Command("umount", disk.text).check()
      try Command("mount", "-o", "loop,ro", (layer.folder / "image").text, disk.text).check()
      defer {
        layer.resume()
        _ = try? Command("umount", disk.text).check()
      }
      let setup = MountSetup(main: disk, point: fixture.point, substitutions: [fixture.substitution])
      try withMount(setup) { mount in
        #expect(try read(mount.point / "replaced.txt") == "substitution's replaced, longer\n")
        #expect(try read(mount.point / "folder/both.txt") == "substitution's both\n")
        layer.stop()
        let readers = try (0..<20).map {
          try Child(Command("cat", (mount.point / ByteString("file\($0)")).text))
        }
        // As many readers as hold up every worker there is at first.
        try expectEventually { try readers.count { try isBlocked($0) } >= 8 }
        for _ in 0..<5 {
          #expect(try read(mount.point / "replaced.txt") == "substitution's replaced, longer\n")
          #expect(try read(mount.point / "folder/added.txt") == "substitution's added\n")
        }
        layer.resume()
        for reader in readers { #expect(try reader.wait(timeout: 20).outputText == "on the disk\n") }
      }
    }
  }
}
