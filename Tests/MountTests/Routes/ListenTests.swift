import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs listen`.
extension MountTests {
  @Suite struct ListenTests {
    private func urls(_ lines: [String]) throws -> [String] { try lines.map { try RoutedResult($0).url } }

    @Test("listen prints new results and no earlier ones", .timeLimit(.minutes(1)))
    func newResults() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        try mount.writeControl("x:before\n")
        let listener = try mount.listen()
        #expect(listener.outputText == "")
        for number in 1...20 {
          try mount.writeControl("x:\(number)\n")
          let lines = try listener.lines(number)
          #expect(lines.last == (try mount.routesText().lines.last))
        }
        try mount.writeControl("match x:1\nx:more\nreset\n")
        try expectErrno(.noSuchFileOrDirectory) { try mount.writeControl("x:none\n") }
        let lines = try listener.lines(24)
        #expect(try urls(lines) == (1...20).map { "x:\($0)" } + ["x:1", "x:more", "reset", "x:none"])
        #expect(listener.errorText == "")
      }
    }

    @Test("listen flushes each line to a pipe", .timeLimit(.minutes(1)))
    func pipe() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let script = #"""
          "$2" listen "$1" Text | while read -r line; do echo "got ${line:0:14}"; done
          """#
        let loop = try Child(Command.shell(script, mount.point, try Binary.underTest()))
        // The pipe does not show when listen is ready; it misses earlier results.
        let isListening = try eventually(within: 20) {
          try mount.writeControl("x:early\n")
          return !loop.outputText.isEmpty
        }
        #expect(isListening)
        for _ in 0..<3 {
          let before = loop.outputText
          try mount.writeControl("x:text\n")
          #expect(eventually(within: 10) { loop.outputText.count > before.count }, "a line was not flushed")
        }
        try loop.kill()
      }
    }

    @Test("names select notifications", .timeLimit(.minutes(1)))
    func selectedNames() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let texts = try mount.listen("Text")
        let both = try mount.listen("Text", "Number")
        let none = try mount.listen("Numbe")
        try mount.writeControl("x:1\nmatch x:a\nroute New i:A/i:B\nx:b\nx:2\n")
        #expect(try urls(try texts.lines(1)) == ["x:b"])
        #expect(try urls(try both.lines(3)) == ["x:1", "x:b", "x:2"])
        #expect(texts.outputText.split(separator: "\n").count == 1 && none.outputText == "")
      }
    }

    @Test("--since resumes without missing results", .timeLimit(.minutes(1)))
    func since() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        var seen: [String] = []
        var last: UInt64 = 2
        for round in 0..<5 {
          for number in 0..<10 { try mount.writeControl("x:\(round * 20 + number)\n") }
          let listener = try mount.listen("--since", ByteString("\(last)"))
          for number in 10..<20 { try mount.writeControl("x:\(round * 20 + number)\n") }
          let lines = try listener.lines(20)
          listener.signal(SIGINT)
          #expect(try listener.wait(timeout: 10).status == 130)
          #expect(listener.errorText == "")
          seen += lines
          last = try RoutedResult(lines[lines.count - 1]).sequence
        }
        #expect(try urls(seen) == (0..<100).map { "x:\($0)" })
      }
    }

    @Test("--since reports results that are no longer kept", .timeLimit(.minutes(1)))
    func overwrittenResults() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        try mount.writeControl((3...2000).map { "x:\($0)\n" }.joined())
        let listener = try mount.listen("--since", "10")
        let lines = try listener.lines(1024)
        #expect(try RoutedResult(lines[0]).sequence == 977)
        #expect(listener.errorText == "bundlefs: missed results 11 to 976\n")
        let current = try mount.listen("--since", "976")
        #expect(try current.lines(1024) == lines && current.errorText == "")
        // A new mount restarts the numbering.
        let future = try mount.listen("--since", "1000000")
        #expect(try future.lines(1024) == lines)
      }
    }

    @Test("listen exits when the reader of its output exits", .timeLimit(.minutes(1)))
    func brokenPipe() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let script = #""$2" listen "$1" --since 2 | head -n 1 > /dev/null; echo "${PIPESTATUS[@]}""#
        let pipe = try Child(Command.shell(script, mount.point, try Binary.underTest()))
        // It prints the third result.
        for _ in 0..<3 { try mount.writeControl("x:1\n") }
        #expect(try pipe.wait(timeout: 20).outputText == "141 0\n")
      }
    }

    @Test("listen does not keep the mount busy and exits with it", .timeLimit(.minutes(1)))
    func unmounted() throws {
      let fixture = try Fixture()
      let mount = try Mount(fixture.setup)
      let listeners = try (0..<3).map { _ in try mount.listen() }
      try mount.unmount()
      for listener in listeners {
        let outcome = try listener.wait(timeout: 10)
        #expect(outcome.status == 0 && outcome.errorText == "", "\(outcome.errorText)")
      }
    }

    @Test("listen exits with the daemon", .timeLimit(.minutes(1)), arguments: [SIGTERM, SIGKILL])
    func daemonExit(signal: CInt) throws {
      let fixture = try Fixture()
      let mount = try Mount(fixture.setup)
      try mount.writeControl("route Any s:A\nx:1\n")
      let listener = try mount.listen("--since", "1")
      _ = try listener.lines(1)
      mount.process.signal(signal)
      let outcome = try listener.wait(timeout: 15)
      #expect(outcome.status == 0 && outcome.errorText == "", "\(outcome.errorText)")
      #expect(try mount.process.wait(timeout: 15).status == (signal == SIGTERM ? 0 : 128 + Int(signal)))
      mount.abandon()
    }

    @Test("wrong usage exits with status 2 and names the error", .timeLimit(.minutes(1)))
    func usage() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let cases: [([ByteString], Int, String)] = [
          ([], 2, "MOUNTPOINT"), ([mount.point, "--since"], 2, "--since"),
          ([mount.point, "--since", "soon"], 2, "--since"), ([mount.point, "--follow"], 2, "--follow"),
          (["/tmp"], 1, "/tmp"),
        ]
        for (arguments, status, name) in cases {
          let outcome = try Command([try Binary.underTest(), "listen"] + arguments).run(timeout: 10)
          #expect(outcome.status == status, "\(arguments)")
          #expect(outcome.errorText.contains(name) && outcome.outputText == "", "\(outcome.errorText)")
        }
      }
    }
  }
}
