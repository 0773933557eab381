import FoundationEssentials
import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs resources`, `bundlefs open`, and the bundle in `bundlefs status`.
extension MountTests {
  @Suite struct ResourceCommandTests {
    private struct Row: Decodable, Equatable {
      var path: String
      var localization: String?
      var mimeType: String
      var layer: String?
    }

    private func rows(_ mount: Mount, _ arguments: ByteString...) throws -> [Row] {
      let command = Command([try Binary.underTest(), "resources", mount.point, "--json"] + arguments)
      return try JSONDecoder().decode([Row].self, from: Data(try command.check().output))
    }

    @Test("resources lists the merged resources, sorted, by type and localization", .timeLimit(.minutes(1)))
    func list() throws {
      let bundle = try BundleFixture()
      try bundle.put(
        ["added.png": "", "logo.png": "mine", "de.lproj/Main.strings": ""], in: bundle.substitution)
      let (main, substitution) = (bundle.fixture.main.text, bundle.fixture.substitution.text)
      let folder = "Contents/Resources/"
      try withMount(bundle.setup()) { mount in
        let all = try rows(mount)
        #expect(all.map(\.path) == all.map(\.path).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        #expect(
          try rows(mount, "--type", "png") == [
            Row(path: folder + "added.png", mimeType: "image/png", layer: substitution),
            Row(path: folder + "logo.png", mimeType: "image/png", layer: substitution),
          ])
        #expect(
          try rows(mount, "--type", ".strings") == [
            Row(
              path: folder + "en.lproj/Main.strings", localization: "en", mimeType: "text/plain", layer: main),
            Row(
              path: folder + "fr.lproj/Main.strings", localization: "fr", mimeType: "text/plain", layer: main),
          ])
        #expect(
          try rows(mount, "--type", "strings", "--localization", "de") == [
            Row(
              path: folder + "de.lproj/Main.strings", localization: "de", mimeType: "text/plain",
              layer: substitution)
          ])
        #expect(try rows(mount, "--type", "nosuch") == [])
        #expect(
          all.filter { $0.path.hasSuffix("/link.svg") } == [
            Row(path: folder + "link.svg", mimeType: "image/svg+xml", layer: main)
          ])
        #expect(all.contains(Row(path: folder + "outside", mimeType: "inode/symlink")))
        let text = try Command([try Binary.underTest(), "resources", mount.point, "--type", "png"]).check()
        #expect(
          text.outputText == """
            Contents/Resources/added.png  -  image/png  \(substitution)
            Contents/Resources/logo.png   -  image/png  \(substitution)

            """)
      }
    }

    @Test(
      "a flat bundle's list omits the control file, and has MIME types even with xattr=off",
      .timeLimit(.minutes(1)))
    func flat() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("xattr=off")) { mount in
        _ = try mount.routesText()
        let paths = try rows(mount)
        #expect(paths.map(\.path) == ["folder", "link", "only", "plain.txt", "replaced.txt"])
        #expect(paths[3] == Row(path: "plain.txt", mimeType: "text/plain"))
      }
    }

    @Test(
      "wrong usage exits with status 2 and names the error", .timeLimit(.minutes(1)),
      arguments: [
        (["resources"], "needs one MOUNTPOINT"), (["resources", "--type"], "'--type' needs a value"),
        (["resources", "--colour", "/"], "no option '--colour'"), (["open"], "needs a URL"),
        (["open", "no url"], "column 3"), (["open", "x:a\nreset"], "control character"),
        (["open", "bundlefs:///sync"], "applies to a single mount"),
        (["resources", "/", "--localization", "../.."], "name of a folder without .lproj"),
      ] as [([String], String)])
    func usage(arguments: [String], words: String) throws {
      let outcome = try Command([try Binary.underTest()] + arguments.map { ByteString($0) }).run()
      #expect(outcome.status == 2 && outcome.errorText.contains(words), "\(outcome.errorText)")
    }

    @Test(
      "-h and --help exit with status 0",
      arguments: ["open -h", "open --help", "resources -h", "resources / --help"])
    func help(words: String) throws {
      let words = words.split(separator: " ").map { ByteString(String($0)) }
      let outcome = try Command([try Binary.underTest()] + words).run()
      #expect(outcome.status == 0 && outcome.errorText == "")
      #expect(outcome.outputText.hasPrefix("usage: bundlefs"))
    }

    @Test("control characters in names are escaped, and long names are not padded", .timeLimit(.minutes(1)))
    func controlCharacters() throws {
      let bundle = try BundleFixture()
      let long = String(repeating: "l", count: 200)
      try bundle.put(
        ["\u{1B}[31mred\n.odd": "", "\u{7F}\u{9B}\t.odd": "", "é.odd": "", "\(long).odd": ""], in: bundle.main
      )
      try withMount(bundle.setup()) { mount in
        let command = Command([try Binary.underTest(), "resources", mount.point, "--type", "odd"])
        let lines = try command.check().outputText.split(separator: "\n", omittingEmptySubsequences: false)
        let rows = [#"\x1B[31mred\x0A.odd"#, "\(long).odd", #"\x7F\xC2\x9B\x09.odd"#, "é.odd"]
        #expect(lines.count == rows.count + 1 && lines.last == "")
        for (line, name) in zip(lines, rows) {
          let path = "Contents/Resources/" + name
          let cell = path + String(repeating: " ", count: max(0, 60 - path.count))
          #expect(line.hasPrefix(cell + "  -  "), "\(line)")
        }
        #expect(try self.rows(mount).contains { $0.path.hasSuffix("/\u{1B}[31mred\n.odd") })
      }
    }

    @Test("open finds the mount that accepts the URL", .timeLimit(.minutes(1)))
    func open() throws {
      let (one, other) = (try BundleFixture(), try BundleFixture())
      try one.put(["only-here.txt": "one"], in: one.main)
      try withMount(one.setup()) { first in
        try first.writeControl("route First first://s:Text")
        try withMount(other.setup()) { second in
          try second.writeControl("route Second second://s:Text")
          let binary = try Binary.underTest()
          let opened = try Command([
            binary, "open", "rsrc:///only-here.txt", "first://hello", "second://hello", "rsrc:///logo.png",
          ]).check()
          let results = try opened.outputText.split(separator: "\n").map { try RoutedResult(String($0)) }
          #expect(results.map(\.summary) == ["resolved", "posted First", "posted Second", "resolved"])
          #expect(try first.lastResult().summary == "posted First")
          #expect(try second.lastResult().url == "rsrc:///logo.png", "the newest mount comes first")
          let refused = try Command([binary, "open", "nobody://a/b/c/d/e/f", "first://again"]).run()
          #expect(
            refused.status == 1 && refused.errorText.contains("no mount accepts nobody://a/b/c/d/e/f"),
            "\(refused.status): \(refused.outputText)\(refused.errorText)")
          #expect(refused.outputText.contains("posted"), "the other URL is opened")
        }
      }
    }

    @Test("open skips a hung mount, which does not get the URL later", .timeLimit(.minutes(1)))
    func hungMount() throws {
      let (one, other) = (try BundleFixture(), try BundleFixture())
      try withMount(one.setup()) { first in
        try first.writeControl("route First both://s:Text")
        try withMount(other.setup()) { second in
          try second.writeControl("route Second both://s:Text")
          let before = try second.lastResult().url
          let open = Command([try Binary.underTest(), "open", "both://hello", "rsrc:///logo.png"])
          do {
            second.signalWorker(SIGSTOP)
            defer { second.signalWorker(SIGCONT) }
            let results = try open.check(timeout: 20).outputText.split(separator: "\n")
            #expect(try results.map { try RoutedResult(String($0)).summary } == ["posted First", "resolved"])
            let refused = try Command([try Binary.underTest(), "open", "nobody://a/b/c/d/e/f"]).run(
              timeout: 20)
            #expect(
              refused.status == 1
                && refused.errorText.contains("\(second.point): its daemon does not answer"),
              "\(refused.errorText)")
          }
          #expect(try second.lastResult().url == before)
          #expect(try open.check().outputText.contains("Second"), "the resumed mount accepts URLs again")
        }
      }
    }

    @Test("open ignores other users' mounts, even for root", .timeLimit(.minutes(1)))
    func otherUser() throws {
      let fixture = try Fixture()
      let setup = try UnprivilegedTests().userSetup(fixture)
      let program = try #require(setup.binary)
      try withOpenDevice {
        try withMount(setup) { mount in
          let route = Command([program, "route", mount.point, "rsrc:///plain.txt"])
          let before = try route.asUser(UnprivilegedTests.nobody).check().outputText
          let open = Command([program, "open", "rsrc:///only-theirs.txt"])
          try (fixture.main / "only-theirs.txt").write("x")
          let refused = try open.run(timeout: 30)
          #expect(refused.status == 1 && refused.outputText == "")
          #expect(!refused.errorText.contains("\(mount.point):"), "\(refused.errorText)")
          let taken = try open.asUser(UnprivilegedTests.nobody).check().outputText
          #expect(before.contains(#"{"sequence":1,"#) && taken.contains(#"{"sequence":2,"#), "\(taken)")
        }
      }
    }

    @Test("open names a mount that the user may not access", .timeLimit(.minutes(1)))
    func inaccessibleMount() throws {
      let fixture = try Fixture()
      let program = try #require(try UnprivilegedTests().userSetup(fixture).binary)
      try withMount(fixture.setup) { mount in
        let open = Command([program, "open", "x://y"]).asUser(UnprivilegedTests.nobody)
        let refused = try open.run(timeout: 30)
        #expect(refused.status == 1 && refused.errorText.contains("\(mount.point): Permission denied"))
      }
    }

    @Test("the status describes the bundle", .timeLimit(.minutes(1)))
    func status() throws {
      struct StatusJSON: Decodable {
        struct Bundle: Decodable, Equatable {
          var identifier: String?
          var developmentRegion: String?
          var localizations: [String]
          var searched: [String]
          var resources: String
          var scheme: String
          var reason: String?
        }
        var bundle: Bundle
      }
      let bundle = try BundleFixture()
      try bundle.put(["nl.lproj/x": ""], in: bundle.substitution)
      try withMount(bundle.setup()) { mount in
        let binary = try Binary.underTest()
        let json = try Command([binary, "status", mount.point, "--json"]).check()
        let status = try JSONDecoder().decode(StatusJSON.self, from: Data(json.output)).bundle
        #expect(
          status
            == StatusJSON.Bundle(
              identifier: "org.example.Zoo", developmentRegion: "en", localizations: ["en", "fr", "nl"],
              searched: ["fr", "en", "Base"], resources: "Contents/Resources", scheme: "rsrc"))
        let text = try Command([binary, "status", mount.point]).check().outputText
        #expect(text.contains("bundle: org.example.Zoo; development region: en\n"))
        #expect(text.contains("localizations: en, fr, nl; searched: fr, en, Base\n"))
        #expect(text.contains("resources: rsrc:///NAME, in /Contents/Resources\n"))
      }
    }

    @Test(
      "without languages=, the mounting user's languages apply, then the bundle's", .timeLimit(.minutes(1)))
    func languages() throws {
      let bundle = try BundleFixture()
      var setup = bundle.fixture.setup
      setup.environment = ["LANG": "pt_BR.UTF-8", "LC_ALL": "", "LC_MESSAGES": ""]
      try bundle.put(["pt.lproj/Main.strings": "Portuguese"], in: bundle.main)
      try withMount(setup) { mount in
        #expect(try (mount.resources / "Main.strings").readText() == "Portuguese")
        try (bundle.main / "pt.lproj" / "Main.strings").remove()
        #expect(try (mount.resources / "Main.strings").readText() == "main's English")
      }
    }
  }
}
