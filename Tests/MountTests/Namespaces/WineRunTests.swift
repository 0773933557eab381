import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs run` with Wine, whose server is played by a process that holds its lock.
extension MountTests {
  @Suite(.serialized) struct WineRunTests {
    /// Holds the lock of a prefix.
    private static let server = #"""
      import fcntl, os, signal, sys, time
      signal.signal(signal.SIGINT, signal.SIG_DFL)  # A shell's background processes ignore it.
      lock = open(sys.argv[1], "w")
      fcntl.lockf(lock, fcntl.LOCK_EX, 1)
      with open(sys.argv[2] + "/part", "w") as part: part.write(str(os.getppid()))
      os.rename(sys.argv[2] + "/part", sys.argv[2] + "/ready")
      while not os.path.exists(sys.argv[2] + "/go"): time.sleep(0.02)
      """#

    /// Where servers have their locks: the usual place, and the one of Debian's server.
    enum Place: CaseIterable {
      case usual, debian
    }

    /// Calls the body with the path of a prefix, of its server's lock, and of a program `wine`.
    private func withPrefix(
      _ place: Place = .usual,
      _ body: (_ prefix: ByteString, _ lock: ByteString, _ wine: ByteString) throws -> Void
    ) throws {
      let folder = try TemporaryFolder()
      let prefix = try folder.folder("home/.wine")
      let base = ByteString(place == .usual ? "/tmp/.wine-\(getuid())" : "/tmp/wine-\(getpid())")
      if place == .debian { try (prefix / "wineserver").write(base.lastComponent.text) }
      let status = try prefix.status()
      let numbers = [status.device, status.inode].map { String($0, radix: 16) }.joined(separator: "-")
      let directory = base / ByteString("server-" + numbers)
      try directory.makeDirectories()
      defer {
        try? (directory / "lock").remove()
        for path in [directory, base] { try? path.removeDirectory() }
      }
      let wine = folder / "wine"
      try wine.write("#!/bin/sh\nexec \"$@\"\n")
      try wine.setMode(0o755)
      try body(prefix, directory / "lock", wine)
    }

    private func withServer(_ lock: ByteString, in folder: ByteString, _ body: (Child) throws -> Void) throws
    {
      let server = try Child(Command(["python3", "-c", ByteString(Self.server), lock, folder]))
      #expect(eventually(within: 20) { (folder / "ready").exists }, "\(server.errorText)")
      try body(server)
      try (folder / "go").write("")
      #expect(try server.wait(timeout: 20).status == 0)
    }

    @Test(
      "a server outside is refused, or a warning where the command need not be Wine's",
      .timeLimit(.minutes(1)),
      arguments: Place.allCases)
    func outside(place: Place) throws {
      try withPrefix(place) { prefix, lock, wine in
        try PrivateRun.with(.root) { run in
          let home = ["HOME": prefix.parent.text]
          func outcome(_ command: [ByteString], _ environment: [String: String]) throws -> Outcome {
            try Command(run.words(command), environment: environment).run()
          }
          let file = run.fixture.main / "replaced.txt"
          try withServer(lock, in: run.scratch()) { server in
            let assignment = "WINEPREFIX=" + prefix
            let certain: [([ByteString], [String: String])] = [
              ([wine, "cat", file], home), (["cat", file], ["WINEPREFIX": prefix.text]),
              (["env", assignment, "cat", file], [:]), (["cat", file, "x/Game.EXE"], home),
            ]
            for (command, environment) in certain {
              let refused = try outcome(command, environment)
              #expect(refused.status == 125 && refused.output.isEmpty)
              #expect(refused.errorText.contains("process \(server.pid)"), "\(refused.errorText)")
              #expect(refused.errorText.contains("\(assignment) wineserver -k"), "\(refused.errorText)")
            }
            let warned = try outcome(["cat", file], home)
            #expect(warned.status == 0 && warned.outputText == "substitution's replaced, longer\n")
            #expect(warned.errorText.contains("warning: a wineserver"), "\(warned.errorText)")
          }
          let ran = try outcome([wine, "cat", file], home)
          #expect(
            ran.status == 0 && ran.outputText == "substitution's replaced, longer\n" && ran.errors.isEmpty)
        }
      }
    }

    @Test(
      "the command returns when a server that it has started has ended", .timeLimit(.minutes(1)),
      arguments: [false, true])
    func inside(isSignalled: Bool) throws {
      try withPrefix { prefix, lock, wine in
        try PrivateRun.with(.root) { run in
          let scratch = try run.scratch()
          let script =
            #"python3 -c "$0" "$1" "$2" < /dev/null & until [ -e "$2/ready" ]; do sleep 0.02; done; exit 3"#
          let words = [wine, "bash", "-c", ByteString(script), ByteString(Self.server), lock, scratch]
          let child = try Child(Command(run.words(words), environment: ["WINEPREFIX": prefix.text]))
          #expect(eventually(within: 20) { (scratch / "ready").exists }, "\(child.errorText)")
          let shell = try #require(pid_t(try (scratch / "ready").readText()))
          // Its parent has waited for it.
          #expect(eventually(within: 20) { kill(shell, 0) != 0 })
          #expect(child.status() == nil)
          if isSignalled { child.signal(SIGTERM) } else { try (scratch / "go").write("") }
          #expect(try child.wait(timeout: 20).status == 3)
        }
      }
    }

    @Test("status and signals are those of the command", .timeLimit(.minutes(1)))
    func status() throws {
      try withPrefix { prefix, _, wine in
        try PrivateRun.with(.root) { run in
          let environment = ["WINEPREFIX": prefix.text]
          for (words, status) in [
            (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137), (["no such program"], 127),
          ] as [([ByteString], Int)] {
            #expect(try Command(run.words(words), environment: environment).run().status == status)
          }
          let scratch = try run.scratch()
          let script = #"trap 'echo got; exit 9' TERM; : > "$0/ready"; while :; do sleep 0.02; done"#
          let child = try Child(
            Command(run.words(["bash", "-c", ByteString(script), scratch]), environment: environment))
          #expect(eventually(within: 20) { (scratch / "ready").exists })
          child.signal(SIGTERM)
          let outcome = try child.wait(timeout: 20)
          #expect(outcome.status == 9 && outcome.outputText == "got\n")
        }
      }
    }
  }
}
