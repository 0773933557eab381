import Posix
import TestSupport
import Testing

/// What a write to the control file is answered, as it shows in a shell.
extension MountTests {
  @Suite struct VerdictTests {
    @Test(
      "a line that fails: bash's message and exit status, and the result that says why",
      .timeLimit(.minutes(1)),
      arguments: [
        ("what is this", "Invalid argument", "EINVAL", "column 1: a URL, match, route"),
        ("x://h/%zz", "Invalid argument", "EINVAL", "column 7: "),
        ("route New s:A/q:B", "Invalid argument", "EINVAL", "column 15: "),
        ("route New s:A/i:A", "Invalid argument", "EINVAL", "column 17: the key A"),
        ("route New", "Invalid argument", "EINVAL", "a pattern is missing"),
        ("reset all", "Invalid argument", "EINVAL", "column 7: "),
        ("match", "Invalid argument", "EINVAL", "match is followed by a URL"),
        ("x://nobody/is/at/home", "No such file or directory", "ENOENT", "no route matches x://nobody"),
        ("match x://h/a/b/c", "No such file or directory", "ENOENT", "no route matches x://h"),
        ("unroute Unknown", "No such file or directory", "ENOENT", "no route is named Unknown"),
        ("bundlefs:///unknown", "No such file or directory", "ENOENT", "only bundlefs:///sync"),
        ("match bundlefs:///sync", "No such file or directory", "ENOENT", "no route matches bundlefs:"),
        (
          "route Twin l:(animal)Domain/s:Name", "File exists", "EEXIST",
          "the same as that of the route Animal"
        ),
        ("route Twin x://i:A/i:B/f:C", "File exists", "EEXIST", "go to the earlier route Numbers"),
      ])
    func verdicts(line: String, message: String, errno: String, error: String) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.say("route Animal l:(animal)Domain/s:Name\nroute Numbers i:A/f:B/f:C\n")
        let before = try mount.routesText().routes
        let outcome = try mount.bash("echo '\(line)' > \"$R\"; echo \"status $?\"")
        #expect(outcome.outputText == "status 1\n")
        #expect(outcome.errorText == "bash: line 2: echo: write error: \(message)\n")
        let text = try mount.routesText()
        #expect(text.routes == before)
        let result = try #require(text.results.last)
        #expect(result.sequence == 3 && result.verdict == "rejected \(errno)")
        #expect(result.error?.contains(error) == true, "\(result.error ?? "")")
      }
    }

    @Test("a line over 64 KiB is too long, one of 64 KiB is not", .timeLimit(.minutes(1)))
    func tooLong() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.say("route Any s:Host/s:Text\n")
        // The shell would divide the line into several writes; dd does not.
        let script = #"""
          for length in 65527 65528; do
            { printf x://host/; head -c $length /dev/zero | tr '\0' a; echo; } |
              dd of="$R" bs=128K iflag=fullblock conv=notrunc status=none
            echo "status $?"
          done
          """#
        let outcome = try mount.bash(script)
        #expect(outcome.outputText == "status 0\nstatus 1\n")
        #expect(outcome.errorText.hasSuffix(": Argument list too long\n"), "\(outcome.errorText)")
        let text = try mount.routesText()
        #expect(text.verdicts.suffix(2) == ["posted Any", "rejected E2BIG"])
        try #require(text.results.count == 3)
        #expect(text.results[1].url.utf8.count == 65536)
        guard case .text(let bound)? = text.results[1].userInfo?["Text"] else { throw TestFailure("no text") }
        #expect(bound.utf8.count == 65527)
      }
    }

    @Test("others may post and match, where the mode lets them, but change nothing", .timeLimit(.minutes(1)))
    func others() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["allow_other", "routes_mode=666"]
      try withMount(setup) { mount in
        try mount.say("route Any s:Text\n")
        let allowed = try mount.bash(
          "echo x:mine > \"$R\" && echo match x:mine > \"$R\" && tail -n 1 \"$R\"", user: UserTests.nobody)
        #expect(allowed.status == 0, "\(allowed.errorText)")
        #expect(try RoutedResult(allowed.outputText).verdict == "matched Any")
        let lines = [
          "route Mine i:A/i:B", "unroute Any", "reset", "bundlefs:///sync", "bundlefs:///invalidate",
          "bundlefs:///invalidate/plain.txt",
        ]
        for line in lines {
          let refused = try mount.bash("echo '\(line)' > \"$R\"", user: UserTests.nobody)
          #expect(refused.status == 1)
          #expect(
            refused.errorText == "bash: line 2: echo: write error: Operation not permitted\n", "\(line)")
          let result = try mount.lastResult()
          #expect(result.verdict == "rejected EPERM" && result.url == line)
        }
        #expect(try mount.routesText().routes == ["route Any s:Text"])
        for line in lines { try mount.say(line) }
        #expect(try mount.routesText().verdicts.suffix(6) == Array(repeating: "applied", count: 6))
      }
    }

    @Test("the usual mode lets nobody else read or write", .timeLimit(.minutes(1)))
    func usualMode() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["allow_other"]
      try withMount(setup) { mount in
        try mount.say("route Any s:Text\n")
        for script in ["echo x:1 > \"$R\"", "cat \"$R\""] {
          let outcome = try mount.bash(script, user: UserTests.nobody)
          #expect(outcome.status == 1 && outcome.errorText.contains("Permission denied"))
        }
        #expect(try mount.routesText().results.count == 1)
      }
    }

    @Test("a user's own mount: he may change routes and use what is built in", .timeLimit(.minutes(1)))
    func usersMount() throws {
      let fixture = try Fixture()
      try withOpenDevice {
        try withMount(try UserTests().userSetup(fixture)) { mount in
          let script = #"""
            echo 'route Any s:Text' > "$R" && echo x:1 > "$R" && echo bundlefs:///sync > "$R" &&
              stat -c '%u %a %F' "$R" && cat "$R"
            """#
          let outcome = try mount.bash(script, user: UserTests.nobody)
          #expect(outcome.status == 0, "\(outcome.errorText)")
          let lines = outcome.outputText.split(separator: "\n").map(String.init)
          #expect(lines.first == "\(UserTests.nobody) 600 regular file")
          let text = try RoutesText(Array(lines.dropFirst().map { $0 + "\n" }.joined().utf8))
          #expect(text.verdicts == ["applied", "posted Any", "applied"])
        }
      }
    }
  }
}
