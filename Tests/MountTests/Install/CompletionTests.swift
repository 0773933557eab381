import FoundationEssentials
import Posix
import TestSupport
import Testing

/// Completion by TAB in shells that run in a terminal.
extension MountTests {
  @Suite struct CompletionTests {
    /// The typed line, the completed line up to a trailing separator, and the listed candidates.
    struct Case {
      let typed: String
      var becomes: String?
      var shows: [String] = []
    }

    static func cases(_ point: String) -> [Case] {
      [
        Case(typed: "bundlefs ", shows: ["status", "listen", "App.app", "Over rides"]),
        Case(typed: "bundlefs sta", becomes: "bundlefs status"),
        Case(typed: "bundlefs Ap", becomes: "bundlefs App.app"),
        Case(typed: "bundlefs status \(point.dropLast())", becomes: "bundlefs status \(point)"),
        Case(typed: "bundlefs status mnt --", becomes: "bundlefs status mnt --json"),
        Case(typed: "bundlefs hea", becomes: "bundlefs health"),
        Case(typed: "bundlefs health \(point.dropLast())", becomes: "bundlefs health \(point)"),
        Case(typed: "bundlefs health --a", becomes: "bundlefs health --all"),
        Case(typed: "bundlefs unmount --l", becomes: "bundlefs unmount --lazy"),
        Case(typed: "bundlefs unmount --a", becomes: "bundlefs unmount --all"),
        Case(typed: "bundlefs run --a", becomes: "bundlefs run --at"),
        Case(typed: "bundlefs run -o list", becomes: "bundlefs run -o list_routes"),
        Case(typed: "bundlefs run Ap", becomes: "bundlefs run App.app"),
        Case(typed: "bundlefs list --", becomes: "bundlefs list --json"),
        Case(typed: "bundlefs resources mnt --", shows: ["--type", "--localization", "--json"]),
        Case(typed: "bundlefs App.app mnt -o sub", becomes: "bundlefs App.app mnt -o substitution="),
        Case(typed: "bundlefs App.app mnt -o list", becomes: "bundlefs App.app mnt -o list_routes"),
        Case(
          typed: "bundlefs App.app mnt -o ro,cache=", shows: ["coherent", "none"]),
        Case(typed: "bundlefs App.app mnt -o xattr=of", becomes: "bundlefs App.app mnt -o xattr=off"),
        Case(
          typed: "bundlefs App.app mnt -o ro,substitution=App.app:Over",
          becomes: #"bundlefs App.app mnt -o ro,substitution=App.app:Over\ rides"#),
        Case(typed: "bundlefs lay", becomes: "bundlefs layers"),
        Case(typed: "bundlefs layers mnt ", shows: ["set", "add", "remove", "move"]),
        Case(typed: "bundlefs layers mnt --", shows: ["--json", "--count", "--top", "--below"]),
        // This layer is not in the working directory.
        Case(typed: "bundlefs layers mnt remove Th", becomes: "bundlefs layers mnt remove Theme"),
        Case(typed: "bundlefs layers mnt remove Theme ", shows: ["Over rides", "Theme"]),
        Case(typed: "bundlefs layers mnt move Th", becomes: "bundlefs layers mnt move Theme"),
        Case(
          typed: "bundlefs layers mnt move Theme --below Ov",
          becomes: #"bundlefs layers mnt move Theme --below Over\ rides"#),
        Case(typed: "bundlefs layers mnt add x --above ", shows: ["Over rides", "Theme", "App.app"]),
        Case(typed: "bundlefs listen mnt ", shows: ["Animal", "Color"]),
        Case(typed: "bundlefs listen --since 4 mnt Col", becomes: "bundlefs listen --since 4 mnt Color"),
        Case(typed: "bundlefs route --b", becomes: "bundlefs route --before"),
        Case(typed: "bundlefs route mnt --before An", becomes: "bundlefs route mnt --before Animal"),
      ]
    }

    @Test(
      "bash and zsh complete commands, options and paths", .timeLimit(.minutes(3)),
      arguments: ["bash", "zsh"])
    func terminal(shell: String) throws {
      try withCompletions { directory, mount, setup in
        let cases = Self.cases(mount.text)
        let driver = ByteString(#filePath).parent / "complete.py"
        let outcome = try Command(
          ["python3", "-B", driver, ByteString(shell), setup / ByteString("setup.\(shell)")]
            + cases.map { ByteString($0.typed) }, directory: directory
        ).check(timeout: 150)
        let results = try JSONDecoder().decode([[String]].self, from: Data(outcome.output))
        #expect(results.count == cases.count)
        for (expected, result) in zip(cases, results) {
          check(expected, becomes: result[0], shows: result[1])
        }
      }
    }

    @Test("fish completes commands, options and paths", .timeLimit(.minutes(3)))
    func fish() throws {
      try withCompletions { directory, mount, setup in
        for expected in Self.cases(mount.text) {
          // fish prints a candidate for the last word and, after a tab, its description per line.
          let outcome = try Command(
            [
              "fish", "--no-config", "-c", #"source $argv[1]; complete -C "$argv[2]""#, setup / "setup.fish",
              ByteString(expected.typed),
            ], directory: directory
          ).check(timeout: 30)
          let words = outcome.outputText.split(separator: "\n").map { String($0.split(separator: "\t")[0]) }
          let start = expected.typed.lastIndex(of: " ").map { expected.typed[...$0] } ?? ""
          if let line = expected.becomes {
            let plain = line.replacing(#"\ "#, with: " ")
            #expect(
              words.map { start + $0 }.contains { Self.isEqual($0, plain) }, "\(expected.typed): \(words)")
          }
          for word in expected.shows {
            #expect(words.contains { $0.contains(word) }, "\(expected.typed): \(words)")
          }
        }
      }
    }

    /// Shells append a separator after a complete word, a folder, or an option in a list.
    private static func isEqual(_ line: String, _ expected: String) -> Bool {
      ["", " ", "/", ","].contains { line == expected + $0 }
    }

    private func check(_ expected: Case, becomes line: String, shows list: String) {
      if let becomes = expected.becomes { #expect(Self.isEqual(line, becomes), "\(expected.typed): \(line)") }
      for word in expected.shows {
        let isShown = list.replacing(#"\ "#, with: " ").contains(word)
        #expect(isShown, "\(expected.typed): \(list)")
      }
    }

    /// Installs bundlefs and mounts a bundle with routes. The body gets the folder of the layers, the mount point, and
    /// the folder of startup files that load the completions in each shell.
    private func withCompletions(_ body: (ByteString, ByteString, ByteString) throws -> Void) throws {
      let installation = try Installation()
      let directory = try installation.folder.folder("place")
      for name in ["App.app", "Over rides", "mnt"] as [ByteString] { try (directory / name).makeDirectory() }
      let setup = try installation.folder.folder("setup")
      try writeSetups(setup, installation.path(""))
      var mount = MountSetup(
        main: directory / "App.app", point: directory / "mnt",
        substitutions: [directory / "Over rides", try installation.folder.folder("Theme")])
      mount.lifetime = 170
      mount.options = ["control=.ways"]
      try withMount(mount) { mount in
        try (mount.point / ".ways").overwrite(
          [UInt8]("route Animal l:(animal)A/s:B\nroute Color l:(color)A/s:B\n".utf8), at: 0)
        try body(directory, mount.point, setup)
      }
    }

    private func writeSetups(_ folder: ByteString, _ prefix: ByteString) throws {
      let share = "\(prefix.text)/share"
      try (folder / "setup.bash").write(
        """
        PATH=\(prefix.text)/bin:$PATH
        . /usr/share/bash-completion/bash_completion
        . \(share)/bash-completion/completions/bundlefs

        """)
      try (folder / "setup.zsh").write(
        """
        PATH=\(prefix.text)/bin:$PATH
        fpath=(\(share)/zsh/vendor-completions $fpath)
        autoload -Uz compinit; compinit -u -D

        """)
      try (folder / "setup.fish").write(
        """
        set PATH \(prefix.text)/bin $PATH
        source \(share)/fish/vendor_completions.d/bundlefs.fish

        """)
    }
  }
}
