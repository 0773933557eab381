import Posix
import TestSupport
import Testing

/// The result of a write to the control file, as a shell sees it.
extension MountTests {
  @Suite struct WriteResultTests {
    @Test(
      "an invalid line fails with errno in bash, and its result has the reason",
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
    func invalidLine(line: String, message: String, errno: String, error: String) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route Animal l:(animal)Domain/s:Name\nroute Numbers i:A/f:B/f:C\n")
        let before = try mount.routesText().routes
        let outcome = try mount.bash("echo '\(line)' > \"$R\"; echo \"status $?\"")
        #expect(outcome.outputText == "status 1\n")
        #expect(outcome.errorText == "bash: line 2: echo: write error: \(message)\n")
        let text = try mount.routesText()
        #expect(text.routes == before)
        let result = try #require(text.results.last)
        #expect(result.sequence == 3 && result.summary == "rejected \(errno)")
        #expect(result.error?.contains(error) == true, "\(result.error ?? "")")
      }
    }

    @Test("a line of 64 KiB is accepted, a longer one fails with E2BIG", .timeLimit(.minutes(1)))
    func tooLong() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route Any s:Host/s:Text\n")
        // The shell would split the line into several writes; dd does not.
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
        #expect(text.summaries.suffix(2) == ["posted Any", "rejected E2BIG"])
        try #require(text.results.count == 3)
        #expect(text.results[1].url.utf8.count == 65536)
        guard case .text(let bound)? = text.results[1].userInfo?["Text"] else { throw TestFailure("no text") }
        #expect(bound.utf8.count == 65527)
      }
    }

    @Test(
      "other users may post and match if the mode permits, but not change routes", .timeLimit(.minutes(1)))
    func otherUsers() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("allow_other", "routes_mode=666")) { mount in
        try mount.writeControl("route Any s:Text\n")
        let allowed = try mount.bash(
          "echo x:mine > \"$R\" && echo match x:mine > \"$R\"", user: UnprivilegedTests.nobody)
        #expect(allowed.status == 0, "\(allowed.errorText)")
        #expect(try mount.lastResult().summary == "matched Any")
        let lines = [
          "route Mine i:A/i:B", "unroute Any", "reset", "bundlefs:///sync", "bundlefs:///invalidate",
          "bundlefs:///invalidate/plain.txt",
        ]
        for line in lines {
          let refused = try mount.bash("echo '\(line)' > \"$R\"", user: UnprivilegedTests.nobody)
          #expect(refused.status == 1)
          #expect(
            refused.errorText == "bash: line 2: echo: write error: Operation not permitted\n", "\(line)")
          let result = try mount.lastResult()
          #expect(result.summary == "rejected EPERM" && result.url == line)
        }
        #expect(try mount.routesText().routes == ["route Any s:Text"])
        for line in lines { try mount.writeControl(line) }
        #expect(try mount.routesText().summaries.suffix(6) == Array(repeating: "applied", count: 6))
      }
    }

    @Test("the default mode denies access to other users", .timeLimit(.minutes(1)))
    func defaultMode() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("allow_other")) { mount in
        try mount.writeControl("route Any s:Text\n")
        for script in ["echo x:1 > \"$R\"", "cat \"$R\""] {
          let outcome = try mount.bash(script, user: UnprivilegedTests.nobody)
          #expect(outcome.status == 1 && outcome.errorText.contains("Permission denied"))
        }
        #expect(try mount.routesText().results.count == 1)
      }
    }

    @Test(
      "an unprivileged user may change routes and use built-in URLs in their own mount",
      .timeLimit(.minutes(1)))
    func unprivilegedMount() throws {
      let fixture = try Fixture()
      try withOpenDevice {
        try withMount(try UnprivilegedTests().userSetup(fixture)) { mount in
          let script = #"""
            echo 'route Any s:Text' > "$R" && echo x:1 > "$R" && echo bundlefs:///sync > "$R" &&
              stat -c '%u %a %F' "$R" && cat "$R"
            """#
          let outcome = try mount.bash(script, user: UnprivilegedTests.nobody)
          #expect(outcome.status == 0, "\(outcome.errorText)")
          let lines = outcome.outputText.split(separator: "\n").map(String.init)
          #expect(lines.first == "\(UnprivilegedTests.nobody) 600 regular file")
          let text = try RoutesText(Array(lines.dropFirst().map { $0 + "\n" }.joined().utf8))
          #expect(text.summaries == ["applied", "posted Any", "applied"])
        }
      }
    }
  }
}
