import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs ui MAIN -o …` mounts first and unmounts at the end.
extension MountTests {
  @Suite struct OwnMountPageTests {
    private let fixture: Fixture
    private let runtime: ByteString

    init() throws {
      fixture = try Fixture()
      runtime = try fixture.folder.folder("runtime")
    }

    private func command(_ words: ByteString...) throws -> Command {
      Command(
        [try Binary.underTest(), "ui"] + words + ["--no-open"], environment: ["XDG_RUNTIME_DIR": runtime.text]
      )
    }

    private var options: ByteString { "substitution=" + MountSetup.escaped(fixture.substitution) }

    private func mounts() throws -> [ByteString] {
      try MountTable.entries().filter { $0.point.hasPrefix(runtime) }.map(\.point)
    }

    /// - Parameter end: ends the process, by a signal.
    private func expectEnd(after signal: CInt, _ act: (ByteString) throws -> Void = { _ in }) throws {
      let process = try Child(command(fixture.main, "-o", options, "-o", "fsname=own"))
      defer { try? process.kill() }
      #expect(eventually(within: 30) { process.outputText.hasSuffix("\n") || process.status() != nil })
      #expect(process.outputText.hasPrefix("http://127.0.0.1:"), "\(process.errorText)")
      let mount = try #require(mounts().first)
      #expect(mount.lastComponent == fixture.main.lastComponent)
      #expect(try mount.parent.status().permissions == 0o700)
      try act(mount)
      process.signal(signal)
      #expect(try process.wait(timeout: 30).status == 0)
      #expect(try mounts() == [])
      #expect(try runtime.names() == [])
    }

    @Test("it mounts in a folder of its own, and unmounts after a signal", .timeLimit(.minutes(2)))
    func signals() throws {
      for signal in [SIGINT, SIGTERM, SIGHUP] {
        try expectEnd(after: signal) { mount in
          let text = try (mount / "replaced.txt").readText()
          #expect(text == "substitution's replaced, longer\n")
        }
      }
    }

    @Test("a program that uses the mount does not keep it", .timeLimit(.minutes(1)))
    func busy() throws {
      var file: CInt = -1
      try expectEnd(after: SIGINT) { mount in
        file = open((mount / "plain.txt").text, O_RDONLY | O_CLOEXEC)
        #expect(file >= 0)
      }
      close(file)
    }

    @Test("a signal ends it also while a layer hangs", .timeLimit(.minutes(2)))
    func hanging() throws {
      let other = try Fixture()
      try withMount(other.setup("watchdog=off")) { layer in
        layer.signalWorker(SIGSTOP)
        defer { layer.signalWorker(SIGCONT) }
        let process = try Child(
          command(fixture.main, "-o", "substitution=" + MountSetup.escaped(layer.point)))
        defer { try? process.kill() }
        #expect(try eventually(within: 30) { try !runtime.names().isEmpty || process.status() != nil })
        process.signal(SIGINT)
        #expect(try process.wait(timeout: 30).status == 1)
        #expect(try mounts() == [] && runtime.names() == [])
        layer.signalWorker(SIGCONT)
        #expect(try (layer.point / "plain.txt").readText() == "main's plain\n")
        #expect(try mounts() == [] && runtime.names() == [])
      }
    }

    @Test("an error leaves no mount and no folder", .timeLimit(.minutes(1)))
    func failures() throws {
      let port = try Child(command(fixture.main, "-o", options))
      defer { try? port.kill() }
      #expect(eventually(within: 30) { port.outputText.hasSuffix("\n") || port.status() != nil })
      let number = port.outputText.dropFirst("http://127.0.0.1:".count).prefix { $0.isNumber }
      let present = try mounts()
      for (words, naming) in [
        ([fixture.main, "-o", options, "--port", ByteString(String(number))], "cannot listen"),
        ([fixture.main, "-o", "substitution=/nonexistent"], "/nonexistent"),
        ([fixture.folder / "none", "-o", options], "none"),
      ] as [([ByteString], String)] {
        let refused = Command(
          [try Binary.underTest(), "ui"] + words + ["--no-open"],
          environment: ["XDG_RUNTIME_DIR": runtime.text])
        let outcome = try refused.run(timeout: 30)
        let isNamed = outcome.status == 1 && outcome.errorText.contains(naming)
        #expect(isNamed && outcome.errorText.split(separator: "\n").count == 1, "\(outcome.errorText)")
        #expect(try mounts() == present)
        #expect(try runtime.names().count == 1)
      }
      port.signal(SIGINT)
      #expect(try port.wait(timeout: 30).status == 0)
      #expect(try mounts() == [])
      #expect(try runtime.names() == [])
    }
  }
}
