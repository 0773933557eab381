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

    @Test("--count and --timeout end it", .timeLimit(.minutes(1)))
    func limits() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let two = try mount.listen("Text", "--count", "2")
        try mount.writeControl("x:1\nx:a\nx:b\nx:c\n")
        let outcome = try two.wait(timeout: 10)
        #expect(outcome.status == 0)
        #expect(try urls(outcome.outputText.split(separator: "\n").map(String.init)) == ["x:a", "x:b"])
        let binary = try Binary.underTest()
        let short = try Command([binary, "listen", mount.point, "--timeout", "0.2"]).run(timeout: 10)
        #expect(short.status == 0 && short.outputText == "")
        let fewer = Command([
          binary, "listen", mount.point, "--since", "5", "--timeout", "0.3", "--count", "2",
        ])
        let one = try fewer.run(timeout: 10)
        #expect(one.status == 1)
        #expect(try urls(one.outputText.split(separator: "\n").map(String.init)) == ["x:c"])
      }
    }

    @Test("--exec runs a command for each result, without a shell", .timeLimit(.minutes(1)))
    func exec() throws {
      try withMount(routes: "route Any s:A?s=s[]:S&n=i?:N\n") { mount in
        let script =
          #"echo "$1/$BUNDLEFS_NOTIFICATION/$BUNDLEFS_URL/$BUNDLEFS_VALUE_A/$BUNDLEFS_VALUE_S/${BUNDLEFS_VALUE_N-none}"; cat"#
        let listener = try mount.listen(
          "--count", "2", "--exec", "bash", "-c", ByteString(script), "bash", "$(id)")
        try mount.writeControl("x:%24(id)?s=1&s=%22\nx:%00?s=&n=7\n")
        let outcome = try listener.wait(timeout: 10)
        #expect(outcome.status == 0 && outcome.errorText == "")
        let lines = outcome.outputText.split(separator: "\n").map(String.init)
        let results = try mount.routesText().lines
        #expect(
          lines == [
            #"$(id)/Any/x:%24(id)?s=1&s=%22/$(id)/["1","\""]/none"#, results[1],
            #"$(id)/Any/x:%00?s=&n=7//[""]/7"#, results[2],
          ])
        let missing = try mount.listen("--exec", "/no/such/program")
        try mount.writeControl("x:1?s=1\n")
        let failed = try missing.wait(timeout: 10)
        #expect(failed.status == 1 && failed.errorText.contains("/no/such/program"))
      }
    }

    @Test("a variable that is too long is left out, and the command continues", .timeLimit(.minutes(1)))
    func longVariables() throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        let script = #"echo "$BUNDLEFS_OUTCOME ${BUNDLEFS_URL-none}""#
        let listener = try mount.listen("--count", "2", "--exec", "bash", "-c", ByteString(script))
        let control = mount.point / ".routes"
        // Each byte has three in the result.
        let line = [UInt8](repeating: 0xFF, count: 60_000) + Array("\n".utf8)
        #expect(throws: (any Error).self) { try control.overwrite(line, at: 0) }
        try mount.writeControl("x:short\n")
        let outcome = try listener.wait(timeout: 20)
        #expect(outcome.status == 0 && outcome.outputText == "rejected none\nposted x:short\n")
        let lines = outcome.errorText.split(separator: "\n")
        #expect(lines.count == 1 && outcome.errorText.contains("BUNDLEFS_URL"), "\(outcome.errorText)")
      }
    }

    @Test("a posted result tells how many listen", .timeLimit(.minutes(1)))
    func listenerCount() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        try mount.writeControl("x:1\n")
        #expect(try mount.lastResult().listeners == 0)
        let listeners = try (0..<3).map { _ in try mount.listen() }
        try mount.writeControl("x:2\n")
        #expect(try mount.lastResult().listeners == 3)
        for listener in listeners.dropFirst() {
          listener.signal(SIGTERM)
          _ = try listener.wait(timeout: 10)
        }
        try mount.writeControl("x:3\n")
        #expect(try mount.lastResult().listeners == 1)
      }
    }

    @Test("the ring holds as many results as results= says", .timeLimit(.minutes(1)))
    func largerRing() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("results=5000")) { mount in
        try mount.writeControl("route Any s:A\n" + (2...6000).map { "x:\($0)\n" }.joined())
        let words: [ByteString] = [
          try Binary.underTest(), "listen", mount.point, "--since", "1", "--count", "5000",
        ]
        let outcome = try Command(words).run(timeout: 20)
        #expect(outcome.errorText == "bundlefs: missed results 2 to 1000\n")
        let lines = outcome.outputText.split(separator: "\n").map(String.init)
        #expect(try urls([lines[0], lines[4999]]) == ["x:1001", "x:6000"])
      }
    }

    @Test("listen needs permission to read, and has it as a member of the group", .timeLimit(.minutes(1)))
    func permissions() throws {
      let fixture = try Fixture()
      for (mode, canListen) in [("644", true), ("622", false), ("640", false)] {
        try withMount(fixture.setup("allow_other,routes_mode=" + ByteString(mode))) { mount in
          try mount.writeControl("route Any s:A\nx:1\n")
          let command = Command([
            try Binary.underTest(), "listen", mount.point, "--since", "1", "--count", "1", "--timeout", "5",
          ])
          let outcome = try command.asUser(12345).run(timeout: 15)
          #expect(outcome.status == (canListen ? 0 : 1), "\(mode): \(outcome.errorText)")
          // An open file without the right to read it shows no results, either.
          if mode == "622" {
            let script = """
              import fcntl, os
              f = os.open(path, os.O_WRONLY)
              try:
                  fcntl.ioctl(f, 3 << 30 | 1024 << 16 | 0x6c << 8 | 1, bytearray(1024))
              except OSError as error:
                  print(error.errno)
              """
            let python = Command(
              "/usr/bin/python3", "-c", "import sys; path = sys.argv[1]\n" + script, mount.controlFile.text)
            #expect(try python.asUser(12345).run(timeout: 10).outputText == "13\n")
          }
        }
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
          ([mount.point, "-x"], 2, "-x"), ([mount.point, "Any", "-c", "1"], 2, "-c"),
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
