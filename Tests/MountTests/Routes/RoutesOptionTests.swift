import Posix
import TestSupport
import Testing

/// Mount options of the control file.
extension MountTests {
  @Suite struct RoutesOptionTests {
    /// Expects a mount with these options to fail with a one-line message that contains a text.
    private func expectRefusal(
      _ options: ByteString..., status: Int, containing text: String, _ fixture: Fixture,
      location: SourceLocation = #_sourceLocation
    ) throws {
      var setup = fixture.setup
      setup.options = options
      for foreground in [true, false] {
        let outcome = try setup.command(foreground: foreground).run(timeout: 20)
        #expect(outcome.status == status, sourceLocation: location)
        #expect(outcome.errorText.contains(text), "\(outcome.errorText)", sourceLocation: location)
        #expect(outcome.errorText.split(separator: "\n").count == 1, sourceLocation: location)
        #expect(try MountTable.entry(at: fixture.point) == nil, sourceLocation: location)
      }
    }

    @Test("an error in a routes file names line and column, and nothing is mounted", .timeLimit(.minutes(1)))
    func errors() throws {
      let fixture = try Fixture()
      let file = fixture.folder / "routes"
      let cases = [
        ("route A s:A\n\nroute B s:A/q:B\n", ":3:13: "),
        ("route A s:A\r\nroute B s:C", ":2:1: s:C never matches"),
        ("# only\nx://h/p\n", ":2:1: only 'route NAME PATTERN'"), ("reset\n", ":1:1: "),
        ("route A\n", ":1:8: "),
      ]
      for (text, words) in cases {
        try file.write(text)
        try expectRefusal("routes=" + file, status: 1, containing: "routes \(file)\(words)", fixture)
      }
      let missing = fixture.folder / "missing"
      try expectRefusal("routes=" + missing, status: 1, containing: missing.text, fixture)
      // The duplicate route is found in the second file.
      try file.write("route A s:A\n")
      try expectRefusal("routes=" + file, "routes=" + file, status: 1, containing: "\(file):1:1: ", fixture)
    }

    @Test("the content of a control file restores its table as a routes file", .timeLimit(.minutes(1)))
    func roundTrip() throws {
      let fixture = try Fixture()
      let saved = fixture.folder / "saved, with a comma"
      var routes: [String] = []
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route B x://l:(%2Fa)A/*:B?q=i?:C\nroute A s:A\nroute A i:A/f:B\nx:1\n")
        try expectErrno(.invalidArgument) { try mount.writeControl("nonsense\n") }
        routes = try mount.routesText().routes
        try Command.shell("cat \"$1\" > \"$2\"", mount.controlFile, saved).check()
      }
      #expect(routes.count == 3)
      try withMount(fixture.setup("routes=" + MountSetup.escaped(saved))) { mount in
        #expect(try mount.routesText().routes == routes)
        #expect(try mount.routesText().results.isEmpty)
        try mount.writeControl("x:1\n")
        #expect(try mount.lastResult().sequence == 1)
      }
    }

    @Test("several routes files apply in order", .timeLimit(.minutes(1)))
    func multipleFiles() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      for (name, pattern) in [("b", "i:A"), ("a", "s:A"), ("empty", "")] {
        let file = fixture.folder / ByteString(name)
        try file.write(pattern.isEmpty ? "" : "route \(name) \(pattern)\n")
        setup.options.append("routes=" + file)
      }
      try withMount(setup) { mount in
        let text = try mount.routesText()
        #expect(text.routes == ["route b i:A", "route a s:A"])
      }
    }

    @Test("every command finds a control file with another name", .timeLimit(.minutes(1)))
    func name() throws {
      let fixture = try Fixture()
      try (fixture.main / ".routes").write("the bundle's own\n")
      try withMount(fixture.setup(#"control=the\,control file,list_routes"#)) { mount in
        #expect(try mount.point.names() == [".routes"] + Fixture.rootNames + ["the,control file"])
        let control = mount.point / "the,control file"
        try control.overwrite(Array("route Any s:A\n".utf8), at: 0)
        #expect(try mount.controlFile.readText() == "the bundle's own\n")
        try mount.command("route", "x:1")
        try mount.command("match", "x:1")
        try mount.command("sync")
        try mount.command("invalidate")
        try mount.command("invalidate", "plain.txt")
        try mount.command("status")
        #expect(try mount.report().version != "")
        let listener = try mount.listen("--since", "1")
        #expect(try listener.lines(5).count == 5)
        #expect(
          try RoutesText(try control.read()).summaries
            == ["applied", "posted Any", "matched Any"] + Array(repeating: "applied", count: 3))
      }
    }

    @Test("the control file has the configured mode, owner and type", .timeLimit(.minutes(1)))
    func mode() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      for (option, mode) in [
        ("list_routes", 0o600), ("list_routes,routes_mode=640", 0o640), ("list_routes,routes_mode=0", 0),
      ] as [(String, UInt32)] {
        setup.options = [ByteString(option)]
        try withMount(setup) { mount in
          let status = try mount.controlFile.status()
          #expect(status.kind == .regular && status.permissions == mode && status.links == 1)
          #expect(status.owner == 0 && status.group == 0)
          let listed = try mount.point.list().filter { $0.name == ".routes" }
          #expect(listed.count == 1 && listed.first?.inode == status.inode && listed.first?.kind == .regular)
        }
      }
    }

    @Test(
      "the control file is not listed but accessible", .timeLimit(.minutes(1)),
      arguments: ["rw", "hide_routes"])
    func hidden(option: String) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup(ByteString(option))) { mount in
        #expect(try mount.point.names() == Fixture.rootNames)
        let listings = Command.shell(
          "ls -la \"$1\"; find \"$1\"; find \"$1\" -ls; echo \"$1\"/.r*", mount.point)
        #expect(try !listings.check().outputText.contains(".routes"))
        try mount.writeControl("route Any s:A\nx:1\n")
        try mount.command("route", "x:2")
        #expect(try mount.routesText().summaries == ["applied", "posted Any", "posted Any"])
        #expect(try mount.controlFile.status().size > 200)
        #expect(try mount.point.names() == Fixture.rootNames)
      }
    }

    @Test("with control=none there is no control file", .timeLimit(.minutes(1)))
    func none() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("control=none,list_routes")) { mount in
        #expect(try mount.point.names() == Fixture.rootNames)
        #expect(!mount.controlFile.exists && !(mount.point / "none").exists)
        for command in ["sync", "invalidate"] as [ByteString] {
          let outcome = try Command([try Binary.underTest(), command, mount.point]).run()
          #expect(outcome.status == 1 && outcome.errorText.contains("control=none"), "\(outcome.errorText)")
        }
        #expect(try mount.command("status").outputText.contains("control=none"))
        // What the layers have under the default name is seen.
        try (fixture.main / ".routes").write("the bundle's own\n")
        #expect(eventually(within: 10) { (try? mount.point.names().first) == ".routes" })
        #expect(try mount.controlFile.readText() == "the bundle's own\n")
      }
    }

    @Test(
      "the control file hides a bundle's entry of the same name",
      .timeLimit(.minutes(1)), arguments: [false, true])
    func collision(isListed: Bool) throws {
      for makesDirectory in [false, true] {
        let fixture = try Fixture()
        if makesDirectory {
          try (fixture.main / ".routes").makeDirectory()
          try (fixture.main / ".routes" / "inner").write("inner\n")
        } else {
          try (fixture.main / ".routes").write("the bundle's own\n")
        }
        try (fixture.main / "folder" / ".routes").write("further down\n")
        var setup = fixture.setup
        setup.options = isListed ? ["list_routes"] : []
        try withMount(setup) { mount in
          try mount.writeControl("route Any s:A\n")
          #expect(try mount.routesText().routes == ["route Any s:A"])
          #expect(try mount.controlFile.status().kind == .regular)
          let listed = try mount.point.list().filter { $0.name == ".routes" }
          #expect(listed.map(\.kind) == (isListed ? [.regular] : []))
          // The name is reserved only in the root.
          #expect(try (mount.point / "folder" / ".routes").readText() == "further down\n")
          #expect(try (mount.point / "folder").names().contains(".routes"))
        }
      }
    }

    @Test(
      "an invalid value exits with status 2 and names the option",
      .timeLimit(.minutes(1)),
      arguments: [
        "routes", "routes=", "control=", "control=a/b", "control=..", "routes_mode=999", "routes_mode=7777",
        "routes_mode", "hide_routes=yes", "list_routes=yes",
      ])
    func invalidValues(option: String) throws {
      let fixture = try Fixture(isFilled: false)
      try expectRefusal(ByteString(option), status: 2, containing: option, fixture)
    }
  }
}
