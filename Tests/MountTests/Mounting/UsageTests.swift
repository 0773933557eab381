import Posix
import TestSupport
import Testing

/// The command's messages and exit statuses.
extension MountTests {
  @Suite struct UsageTests {
    @Test("-h prints the usage, -V the version", .timeLimit(.minutes(1)))
    func help() throws {
      let binary = try Binary.underTest()
      let help = try Command([binary, "-h"]).check()
      for word in ["MAIN", "MOUNTPOINT", "substitution=", "unmount"] {
        #expect(help.outputText.contains(word), "\(word)")
      }
      let version = try Command([binary, "-V"]).check()
      #expect(version.outputText.contains("bundlefs"))
      #expect(version.outputText.contains { $0.isNumber })
    }

    @Test("wrong usage exits with status 2 and one line that names the error", .timeLimit(.minutes(1)))
    func wrongUsage() throws {
      let fixture = try Fixture()
      let (main, point) = (fixture.main, fixture.point)
      try expectRefusal([main, point, "-o", "nosuchoption=1"], status: 2, naming: "nosuchoption", fixture)
      try expectRefusal([main, point, "-o", "substitution"], status: 2, naming: "substitution", fixture)
      try expectRefusal([main, point, "--nosuchflag"], status: 2, naming: "nosuchflag", fixture)
      try expectRefusal([main, point, "-o"], status: 2, naming: "-o", fixture)
      try expectRefusal([main], status: 2, naming: "", fixture)
      try expectRefusal([], status: 2, naming: "", fixture)
      try expectRefusal([main, point, "/one/too/many"], status: 2, naming: "/one/too/many", fixture)
      try expectRefusal([main, point, "-o", "xattr=perhaps"], status: 2, naming: "xattr", fixture)
    }

    @Test("misspelt words are answered with the right ones", .timeLimit(.minutes(1)))
    func misspelt() throws {
      let fixture = try Fixture()
      let (main, point) = (fixture.main, fixture.point)
      try expectRefusal(["statsu", point], status: 2, naming: "'bundlefs status'", fixture)
      try expectRefusal(["umount", point], status: 2, naming: "'bundlefs unmount'", fixture)
      try expectRefusal(
        ["mount", main, point], status: 2, naming: "bundlefs \(main) \(point)", fixture)
      try expectRefusal([main, point, "-o", "cach=none"], status: 2, naming: "'cache='", fixture)
      try expectRefusal([main, point, "-o", "ro=1"], status: 2, naming: "takes no value", fixture)
    }

    @Test("a path whose comma or colon is not escaped is recognised", .timeLimit(.minutes(1)))
    func separators() throws {
      let fixture = try Fixture()
      let (main, point) = (fixture.main, fixture.point)
      let layers = try ["a,b", "c:d"].map { try fixture.folder.folder($0) } as [ByteString]
      for layer in layers {
        let option = "substitution=" + fixture.substitution + ":" + layer
        let status = layer.text.contains(",") ? 2 : 1
        let escaped = MountSetup.escaped(layer)
        try expectRefusal(
          [main, point, "-o", option], status: status, naming: "write it as '\(escaped.text)'", fixture)
        var setup = fixture.setup
        setup.substitutions = [layer]
        try withMount(setup) { mount in
          let report = try mount.report()
          #expect(report.layers[0].path == layer.text)
        }
      }
      // A relative path, as the shell completes it.
      let outcome = try Command(
        [try Binary.underTest(), main, point, "-o", "substitution=c:d"], directory: fixture.folder.path
      ).run(timeout: 20)
      #expect(
        outcome.status == 1 && outcome.errorText.contains(#"write it as 'c\:d'"#), "\(outcome.errorText)")
      try withMount(fixture.setup) { mount in
        let switched = try Command([try Binary.underTest(), "layers", mount.point, "set", layers[1]]).run()
        #expect(switched.status == 1 && switched.errorText.contains(#"c\:d'"#), "\(switched.errorText)")
      }
    }

    @Test("exchanged MAIN and MOUNTPOINT are refused", .timeLimit(.minutes(1)))
    func exchanged() throws {
      let fixture = try Fixture()
      let empty = try fixture.folder.folder("empty")
      try expectRefusal(
        [empty, fixture.main], status: 2, naming: "'bundlefs \(fixture.main) \(empty)'", fixture)
      var setup = MountSetup(main: empty, point: fixture.main)
      setup.options = ["nonempty", "substitution="]
      try withMount(setup) { mount in
        let paths = try mount.report().layers.map { $0.path }
        #expect(try mount.point.names().isEmpty && paths == [empty.text])
      }
      // A mount over one of its layers is meant so.
      setup = MountSetup(main: empty, point: fixture.main, substitutions: [fixture.main])
      try withMount(setup) { mount in
        let names = try mount.point.names()
        #expect(names == Fixture.rootNames)
      }
    }

    @Test("'bundlefs COMMAND --help' prints that command's help", .timeLimit(.minutes(1)))
    func commandHelp() throws {
      let program = try Binary.underTest()
      let diff = try Command([program, "diff", "--help"]).check().outputText
      #expect(
        diff.hasPrefix("usage: bundlefs diff MOUNTPOINT [PATH] [--json|--html FILE]\n\n")
          && !diff.contains("layers MOUNT"))
      let run = try Command([program, "run", "-h"]).check().outputText
      #expect(run.hasPrefix("usage: bundlefs run "))
      let fixture = try Fixture()
      let inner = try Command([program, "run", fixture.main, "--", "echo", "--help"]).check().outputText
      #expect(!inner.contains("bundlefs"))
    }

    @Test("an impossible mount exits with status 1 and one line that names the path", .timeLimit(.minutes(1)))
    func impossibleMounts() throws {
      let fixture = try Fixture()
      let (main, point) = (fixture.main, fixture.point)
      let missing = fixture.folder / "missing"
      let file = fixture.main / "plain.txt"
      try expectRefusal([missing, point], status: 1, naming: missing.text, fixture)
      try expectRefusal([main, missing], status: 1, naming: missing.text, fixture)
      try expectRefusal([main, file], status: 1, naming: file.text, fixture)
      for folder in [missing, file] {
        try expectRefusal(
          [main, point, "-o", "substitution=" + folder], status: 1, naming: folder.text, fixture)
        try expectRefusal(
          [main, point, "-o", "substitution=" + fixture.substitution + ":" + folder], status: 1,
          naming: folder.text, fixture)
      }
    }

    @Test("without /dev/fuse the error message names it", .timeLimit(.minutes(1)))
    func noDevice() throws {
      let fixture = try Fixture()
      // A mount namespace in which /dev is empty.
      let outcome = try Command.shell(
        #"exec unshare --mount bash -c 'mount -t tmpfs none /dev && exec "$@"' bash "$@""#,
        try Binary.underTest(), fixture.main, fixture.point
      ).run(timeout: 20)
      #expect(outcome.status == 1)
      #expect(outcome.errorText.contains("/dev/fuse"))
      #expect(outcome.errorText.split(separator: "\n").count == 1, "\(outcome.errorText)")
    }

    @Test("unmounting fails where nothing is mounted", .timeLimit(.minutes(1)))
    func nothingToUnmount() throws {
      let fixture = try Fixture()
      try expectRefusal(["unmount", fixture.point], status: 1, naming: fixture.point.text, fixture)
      try expectRefusal(["unmount"], status: 2, naming: "", fixture)
    }

    /// Runs the command and expects one line on its error output and no mount.
    private func expectRefusal(
      _ arguments: [ByteString], status: Int, naming name: String, _ fixture: Fixture,
      location: SourceLocation = #_sourceLocation
    ) throws {
      let outcome = try Command([try Binary.underTest()] + arguments).run(timeout: 20)
      let message = Comment("\(arguments): exit \(outcome.status): \(outcome.errorText)")
      #expect(outcome.status == status, message, sourceLocation: location)
      #expect(outcome.errorText.split(separator: "\n").count == 1, message, sourceLocation: location)
      #expect(outcome.errorText.hasPrefix("bundlefs: "), message, sourceLocation: location)
      #expect(name.isEmpty || outcome.errorText.contains(name), message, sourceLocation: location)
      #expect(outcome.output.isEmpty, sourceLocation: location)
      let left = try MountTable.entries().filter { $0.point.hasPrefix(fixture.folder.path) }
      #expect(left.isEmpty, message, sourceLocation: location)
    }
  }
}
