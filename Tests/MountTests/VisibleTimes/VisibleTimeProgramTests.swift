import Glibc
import Posix
import TestSupport
import Testing

/// Programs that go by modification times see what `-o mtime=visible` shows.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct VisibleTimeProgramTests {
    /// Runs the body for an override and for its removal; the override is newer than MAIN's file, but old.
    private func expectSeen(
      _ options: ByteString..., body: (VisibleTimeFixture, Mount, _ text: String) throws -> Void
    ) throws {
      let fixture = try VisibleTimeFixture()
      fixture.setup.options += options
      try withMount(fixture.setup) { mount in
        try body(fixture, mount, "main")
        try fixture.write("over", to: fixture.top / "file", year: 2003)
        try mount.barrier()
        try body(fixture, mount, "over")
        try (fixture.top / "file").remove()
        try mount.barrier()
        try body(fixture, mount, "main")
      }
    }

    @Test("make builds again, once", .timeLimit(.minutes(1)))
    func make() throws {
      try expectSeen { fixture, mount, text in
        let makefile = fixture.folder / "Makefile"
        try makefile.write("built: \(mount.point)/file\n\tcp $< $@\n\techo . >> log\n")
        let log = fixture.folder / "log"
        let runs = (try? log.readText().count) ?? 0
        try Command(["make", "-C", fixture.folder.path, "built"]).check()
        #expect(try (fixture.folder / "built").readText() == text)
        #expect(try log.readText().count == runs + 2)
        // Targets have the time of the file system's clock, which ticks.
        _ = eventually(within: 20) {
          (try? Command(["make", "-q", "-C", fixture.folder.path, "built"]).run().status) == 0
            || (try? Command(["touch", fixture.folder / "built"]).run()) == nil
        }
        let later = try log.readText().count
        try Command(["make", "-C", fixture.folder.path, "built"]).check()
        #expect(try log.readText().count == later)
      }
    }

    @Test("rsync copies again, to times of nanoseconds", .timeLimit(.minutes(1)))
    func rsync() throws {
      guard try Command("sh", "-c", "command -v rsync").run().status == 0 else { return }
      try expectSeen { fixture, mount, text in
        let copy = fixture.folder / "copy"
        let words: [ByteString] = [
          "rsync", "-rtu", "--modify-window=-1", "--itemize-changes", mount.point / "file", copy,
        ]
        let first = try Command(words).check().outputText
        #expect(first.contains(">f"))
        #expect(try copy.readText() == text)
        let second = try Command(words).check().outputText
        #expect(second.isEmpty)
      }
    }

    private func expectModified(
      _ fixture: VisibleTimeFixture, _ port: Int, _ text: String, _ last: inout String
    ) throws {
      let address = "http://127.0.0.1:\(port)/file"
      let script = """
        import sys, urllib.request, urllib.error
        request = urllib.request.Request(sys.argv[1])
        if sys.argv[2]: request.add_header("If-Modified-Since", sys.argv[2])
        try:
          answer = urllib.request.urlopen(request)
          print(answer.status, answer.read().decode(), answer.headers["Last-Modified"], sep="|")
        except urllib.error.HTTPError as error: print(error.code)
        """
      func ask(_ time: String) throws -> [Substring] {
        try Command("python3", "-c", script, address, time).check().outputText.split(whereSeparator: {
          $0 == "|" || $0 == "\n"
        })
      }
      let answer = try ask(last)
      #expect(answer.first == "200" && answer.count == 3 && answer[1] == text, "\(answer)")
      last = answer.count == 3 ? String(answer[2]) : ""
      #expect(try ask(last) == ["304"])
      // HTTP's times are whole seconds.
      let second = TimeSpec.now.seconds
      while TimeSpec.now.seconds == second { usleep(10_000) }
    }

    /// A port that is free just now.
    private func freePort() throws -> Int {
      let script = "import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1])"
      let text = try Command("python3", "-c", script).check().outputText
      return try #require(Int(text.dropLast()))
    }

    private func expectAnswers(_ port: Int, _ server: Child) throws {
      let probe = "import socket, sys; socket.create_connection((\"127.0.0.1\", int(sys.argv[1]))).close()"
      let answers = eventually(within: 30) {
        (try? Command("python3", "-c", probe, "\(port)").run().status) == 0 || server.status() != nil
      }
      #expect(answers && server.status() == nil, "\(server.errorText)")
    }

    @Test(
      "a server answers 200, not 304, to If-Modified-Since", .timeLimit(.minutes(2)),
      arguments: ["python3", "nginx"])
    func server(program: String) throws {
      guard try Command("sh", "-c", "PATH=$PATH:/usr/sbin command -v \(program)").run().status == 0 else {
        return
      }
      let port = try freePort()
      var (last, server): (String, Child?) = ("", nil)
      defer { try? server?.kill() }
      try expectSeen { fixture, mount, text in
        if server == nil {
          let started = try Child(try command(of: program, port, mount, fixture))
          server = started
          try expectAnswers(port, started)
        }
        try expectModified(fixture, port, text, &last)
      }
    }

    private func command(
      of program: String, _ port: Int, _ mount: Mount, _ fixture: VisibleTimeFixture
    ) throws -> Command {
      if program == "python3" {
        return Command([
          "python3", "-m", "http.server", "--bind", "127.0.0.1", "-d", mount.point, ByteString("\(port)"),
        ])
      }
      let file = fixture.folder / "nginx.conf"
      let folder = fixture.folder.path
      try file.write(
        """
        user root; daemon off; pid \(folder)/pid; error_log \(folder)/error.log; events {}
        http { access_log off; if_modified_since before; sendfile on; server { listen 127.0.0.1:\(port); root \(mount.point); } }
        """)
      return Command(["/usr/sbin/nginx", "-c", file, "-p", folder])
    }
  }
}
