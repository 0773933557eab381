import Posix
import TestSupport
import Testing

/// `bundlefs route` and `bundlefs match`.
extension MountTests {
  @Suite struct RouteCommandTests {
    private func run(_ name: ByteString, _ mount: Mount, _ arguments: ByteString...) throws -> Outcome {
      try Command([try Binary.underTest(), name, mount.point] + arguments).run(timeout: 20)
    }

    @Test("route and match print each URL's result", .timeLimit(.minutes(1)))
    func results() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let posted = try run("route", mount, "x:1", "x://a%20b", "x:1")
        #expect(posted.status == 0 && posted.errorText == "", "\(posted.errorText)")
        let text = try mount.routesText()
        #expect(posted.outputText == text.lines.suffix(3).map { $0 + "\n" }.joined())
        #expect(text.summaries.suffix(3) == ["posted Number", "posted Text", "posted Number"])
        let matched = try run("match", mount, "x:1", "x:b")
        #expect(matched.status == 0 && matched.errorText == "")
        #expect(try mount.routesText().summaries.suffix(2) == ["matched Number", "matched Text"])
        #expect(matched.outputText == (try mount.routesText().lines.suffix(2).map { $0 + "\n" }.joined()))
      }
    }

    @Test(
      "a rejected URL makes the exit status 1, and the others are still processed", .timeLimit(.minutes(1)))
    func rejected() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        for name in ["route", "match"] as [ByteString] {
          let outcome = try run(name, mount, "x:1", "x://a/b", "x:%", "x:2")
          #expect(outcome.status == 1 && outcome.errorText == "", "\(outcome.errorText)")
          let results = try outcome.outputText.split(separator: "\n").map { try RoutedResult(String($0)) }
          #expect(results.map(\.outcome).filter { $0 == "rejected" }.count == 2)
          #expect(results.map(\.errno) == [nil, "ENOENT", "EINVAL", nil])
        }
      }
    }

    @Test(
      "- takes URLs from standard input, and sends those that are there together", .timeLimit(.minutes(1)))
    func standardInput() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let script = #"""
          for n in {1..1000}; do echo "x:$n"; [ $((n % 100)) != 0 ] || echo "x://no/$n"; done > urls
          printf '\n# a comment\nx:%%\r\nx:last' >> urls
          "$B" route "$M" x:first - x:end < urls; echo "status $?"
          (echo x:1; sleep 0.2; echo x:2) | "$B" match "$M" -
          """#
        let folder = try TemporaryFolder()
        let outcome = try mount.bash("cd " + folder.path.text + "\n" + script)
        #expect(outcome.errorText == "")
        let lines = outcome.outputText.split(separator: "\n").map(String.init)
        guard lines.count == 1017 else { throw TestFailure("\(lines.count) lines") }
        #expect(lines[1014] == "status 1")
        let results = try (lines[..<1014] + lines[1015...]).map { try RoutedResult($0) }
        var urls = (1...1000).flatMap { $0 % 100 == 0 ? ["x:\($0)", "x://no/\($0)"] : ["x:\($0)"] }
        urls = ["x:first"] + urls + ["x:%", "x:last", "x:end"]
        #expect(results.dropLast(2).map(\.url) == urls)
        #expect(results.count { $0.errno == "ENOENT" } == 10 && results.count { $0.errno == "EINVAL" } == 1)
        #expect(results.suffix(2).map(\.outcome) == ["matched", "matched"])
        // No line is written twice.
        #expect(try mount.routesText().results.last?.sequence == 2 + 1014 + 2)
      }
    }

    @Test("the result of a line with white space, or of a command, is found", .timeLimit(.minutes(1)))
    func whiteSpace() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let outcome = try run("route", mount, "x:1 ", "\t x:1\r", "match x:1", "match  x:1 ")
        #expect(outcome.status == 0 && outcome.errorText == "", "\(outcome.errorText)")
        let results = try outcome.outputText.split(separator: "\n").map { try RoutedResult(String($0)) }
        #expect(results.map(\.url) == ["x:1", "x:1", "x:1", "x:1"])
        #expect(results.map(\.outcome) == ["posted", "posted", "matched", "matched"])
        let matched = try mount.bash(#"printf ' x:1\t\n' | "$B" match "$M" ' x:1 ' -"#)
        #expect(matched.status == 0 && matched.errorText == "", "\(matched.errorText)")
        #expect(matched.outputText.split(separator: "\n").count == 2)
        let registered = try run("route", mount, "--before", "Text ", "Special", "l:(a)Key")
        #expect(registered.status == 0 && registered.errorText == "", "\(registered.errorText)")
      }
    }

    @Test("output that cannot be written is an error", .timeLimit(.minutes(1)))
    func fullOutput() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        for command in ["route \"$M\" x:1", "match \"$M\" x:1", "status \"$M\"", "list"] {
          let outcome = try mount.bash("\"$B\" \(command) >/dev/full")
          #expect(outcome.status == 1, "\(command)")
          #expect(outcome.errorText.contains("standard output: "), "\(outcome.errorText)")
        }
      }
    }

    @Test("users who may write and not read are told so", .timeLimit(.minutes(1)))
    func unreadable() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["allow_other", "routes_mode=622"]
      try withMount(setup) { mount in
        try mount.writeControl("route Any unreadable-results://s:Text\n")
        for (name, status, words) in [
          ("match", 1, "cannot be read: Permission denied"), ("route", 0, ""),
        ] as [(ByteString, Int, String)] {
          let arguments = [try Binary.underTest(), name, mount.point, "unreadable-results:a"]
          let outcome = try Command(arguments).asUser(UnprivilegedTests.nobody).run(timeout: 20)
          #expect(outcome.status == status && outcome.outputText == "", "\(outcome.outputText)")
          #expect(outcome.errorText.contains(words), "\(outcome.errorText)")
        }
        let open = Command([try Binary.underTest(), "open", "unreadable-results:a"])
        let opened = try open.asUser(UnprivilegedTests.nobody).run(timeout: 60)
        #expect(opened.status == 0 && opened.errorText == "", "\(opened.errorText)")
        #expect(try mount.lastResult().outcome == "posted")
      }
    }

    @Test("a long URL is written separately", .timeLimit(.minutes(1)))
    func long() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let url = "x:" + String(repeating: "a", count: 65_000)
        let outcome = try run("route", mount, ByteString(url), "x:1")
        #expect(outcome.status == 0)
        let lines = outcome.outputText.split(separator: "\n")
        #expect(try lines.count == 2 && RoutedResult(String(lines[0])).url == url)
        let over = try run("route", mount, ByteString(url + String(repeating: "a", count: 600)))
        #expect(over.status == 1 && over.errorText.hasSuffix(": Argument list too long\n"))
      }
    }

    @Test("--before registers a route before another", .timeLimit(.minutes(1)))
    func before() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let registered = try run("route", mount, "--before", "Text", "Special", "l:(special before)Key")
        #expect(registered.status == 0 && registered.errorText == "", "\(registered.errorText)")
        let table = try mount.routesText().routes
        #expect(table.suffix(2).first == "route Special l:(special%20before)Key", "\(table)")
        #expect(try run("match", mount, "x:special%20before").outputText.contains("\"Special\""))
        let unknown = try run("route", mount, "--before", "No", "Other", "l:(other)Key")
        #expect(try unknown.status == 1 && RoutedResult(unknown.outputText).errno == "ENOENT")
        for arguments in [
          ["--before"], ["--before", "Text"], ["--before", "Text", "A"], ["--after", "x:1"],
        ] {
          let outcome = try Command(
            [try Binary.underTest(), "route", mount.point] + arguments.map { ByteString($0) }
          ).run(timeout: 10)
          #expect(outcome.status == 2 && outcome.errorText.contains("--"), "\(outcome.errorText)")
        }
      }
    }

    @Test("results of other writers are not mistaken for the command's own", .timeLimit(.minutes(1)))
    func otherWriters() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        let isStopping = Locked(false)
        let noise = try LoopThread("noise", until: isStopping) { _ in
          try mount.writeControl("x:noise\nx:1\n")
          Clock.sleep(0.002)
        }
        for number in 0..<10 {
          let outcome = try run("route", mount, ByteString("x:own-\(number)"), ByteString("x:more-\(number)"))
          let results = try outcome.outputText.split(separator: "\n").map { try RoutedResult(String($0)).url }
          #expect(results == ["x:own-\(number)", "x:more-\(number)"] && outcome.status == 0)
        }
        isStopping.withLock { $0 = true }
        #expect(eventually(within: 10) { noise.isFinished } && noise.failure == nil)
      }
    }

    @Test("wrong usage exits with status 2, a missing mount with 1", .timeLimit(.minutes(1)))
    func usage() throws {
      try withMount(routes: numberAndTextRoutes) { mount in
        for name in ["route", "match"] as [ByteString] {
          let cases: [([ByteString], Int, String)] = [
            ([], 2, name.text), ([mount.point], 2, "URL"),
            ([mount.point, "x:1\nx:2"], 2, "contains a newline"), ([mount.point, " "], 2, "'' is not a URL"),
            ([mount.point, "# a"], 2, "'# a' is not a URL"), ([mount.point, "{}"], 2, "'{}' is not a URL"),
            (["/tmp", "x:1"], 1, "/tmp"), (["/tmp/no/such/folder", "x:1"], 1, "/tmp/no/such/folder"),
          ]
          for (arguments, status, words) in cases {
            let outcome = try Command([try Binary.underTest(), name] + arguments).run(timeout: 10)
            #expect(outcome.status == status, "\(arguments)")
            #expect(outcome.errorText.contains(words) && outcome.outputText == "", "\(outcome.errorText)")
          }
        }
        #expect(try mount.routesText().results.count == 2)
      }
    }
  }
}
