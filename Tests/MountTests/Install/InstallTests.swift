import Posix
import TestSupport
import Testing

/// Installation and removal by `scripts/install`.
extension MountTests {
  @Suite struct InstallTests {
    @Test("--list names the installed files, and --uninstall removes them all", .timeLimit(.minutes(2)))
    func roundTrip() throws {
      let installation = try Installation()
      let listed = try installation.command("--list").check().outputText.split(separator: "\n").map(
        String.init)
      #expect(try installation.files() == listed)
      #expect(listed.contains("/usr/bin/bundlefs") && listed.contains("/usr/share/man/man8/bundlefs.8.gz"))
      let version = try Command([installation.path("bin/bundlefs"), "-V"]).check().outputText
      #expect(version == (try Command([try Binary.underTest(), "-V"]).check().outputText))
      #expect(try installation.path("sbin/mount.bundlefs").linkTarget() == "../bin/bundlefs")
      #expect(try installation.path("bin/bundlefs").status().permissions == 0o755)
      // A second installation over the first.
      try installation.command().check(timeout: 120)
      #expect(try installation.files() == listed)
      try installation.command("--uninstall").check()
      #expect(try installation.root.names() == [])
    }

    @Test("foreign files are neither removed nor overwritten", .timeLimit(.minutes(2)))
    func foreignFiles() throws {
      let installation = try Installation()
      let other = installation.path("share/man/man8/other.8")
      try other.write("another's page")
      try installation.command("--uninstall").check()
      #expect(try installation.files() == ["/usr/share/man/man8/other.8"])

      try installation.path("bin").makeDirectories()
      try installation.path("bin/bundlefs").write("another's program")
      let refusal = try installation.command().run(timeout: 120)
      #expect(refusal.status == 1 && refusal.errorText.contains("bin/bundlefs is there already"))
      #expect(try installation.path("bin/bundlefs").readText() == "another's program")
      #expect(try installation.files() == ["/usr/bin/bundlefs", "/usr/share/man/man8/other.8"])
      let nothing = try installation.command("--uninstall").run()
      #expect(nothing.status == 1 && nothing.errorText.contains("nothing is installed"))
    }

    @Test("with a private prefix the script prints how to enable mount(8)", .timeLimit(.minutes(2)))
    func privatePrefix() throws {
      let installation = try Installation(prefix: "/home/me/.local")
      #expect(installation.output.contains("ln -s /home/me/.local/bin/bundlefs /sbin/mount.bundlefs"))
      #expect(try installation.files().allSatisfy { $0.hasPrefix("/home/me/.local/") })
      let unit = try installation.path("share/systemd/user/bundlefs@.service").readText()
      #expect(unit.contains("ExecStart=/home/me/.local/bin/bundlefs "))
      #expect(!unit.contains("@PREFIX@"))
      try installation.command("--uninstall").check()
      #expect(try installation.root.names() == [])
    }

    @Test("wrong usage installs nothing", .timeLimit(.minutes(1)))
    func wrongUsage() throws {
      for arguments in [["--prefix"], ["--prefix", "/"], ["--prefix", ""], ["--frobnicate"]] {
        let outcome = try Command(
          [Installation.scripts / "install"] + arguments.map { ByteString($0) },
          environment: ["DESTDIR": "/x"]
        ).run()
        #expect(outcome.status == 2 && outcome.outputText == "", "\(arguments)")
      }
    }

    @Test("the manual pages render without a warning", .timeLimit(.minutes(1)))
    func manualPages() throws {
      let folder = Installation.scripts / "share/man"
      #expect(try folder.names() == ["bundlefs-routes.5", "bundlefs.8"])
      for page in try folder.names() {
        let outcome = try Command(
          ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", folder / page],
          environment: ["LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"]
        ).check()
        #expect(outcome.errorText == "", "\(page)")
        #expect(outcome.outputText.count > 2000, "\(page)")
      }
    }

    @Test("systemd accepts the units", .timeLimit(.minutes(1)), .enabled(if: SystemdAnalyze.isInstalled))
    func units() throws {
      let installation = try Installation()
      let folder = try installation.folder.folder("units")
      let service = try installation.path("lib/systemd/system/bundlefs@.service").readText()
      // systemd-analyze checks that the program exists.
      try (folder / "bundlefs@.service").write(service.replacing("/usr/bin/bundlefs", with: "/bin/true"))
      let examples = installation.path("share/doc/bundlefs/examples")
      for name in try examples.names() { try (folder / name).write(try (examples / name).readText()) }
      let outcome = try Command(
        "systemd-analyze", "verify", "--man=no", "bundlefs@x.service", "./srv-app.mount",
        "./srv-app.automount",
        in: folder
      ).run()
      #expect(outcome.status == 0 && outcome.errorText == "", "\(outcome.errorText)")
    }

    @Test("the manual page and completions cover every word of the help", .timeLimit(.minutes(2)))
    func documentedWords() throws {
      let help = HelpWords(try Command([try Binary.underTest(), "--help"]).check().outputText)
      #expect(help.commands.count >= 9 && help.flags.count >= 10 && help.options.count >= 25)
      let installation = try Installation()
      let page = ManualWords(try (Installation.scripts / "share/man/bundlefs.8").readText())
      for word in help.commands { #expect(page.words.contains(word), "bundlefs(8) lacks '\(word)'") }
      for word in help.flags + help.options {
        #expect(page.headings.contains(word), "bundlefs(8) has no heading for '\(word)'")
      }
      for file in [
        "share/bash-completion/completions/bundlefs", "share/zsh/vendor-completions/_bundlefs",
        "share/fish/vendor_completions.d/bundlefs.fish",
      ] as [ByteString] {
        let table = CompletionWords(try installation.path(file).readText())
        #expect(table.commands == Set(help.commands), "\(file)")
        #expect(table.flags.isSuperset(of: help.flags), "\(file)")
        #expect(table.options == Set(help.options), "\(file)")
      }
    }
  }
}

/// systemd-analyze(1), which checks units.
enum SystemdAnalyze {
  static var isInstalled: Bool { (try? Command("systemd-analyze", "--version").check()) != nil }
}
