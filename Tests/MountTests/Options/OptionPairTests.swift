import Glibc
import Posix
import TestSupport
import Testing

extension String {
  /// The text between two others, if it has both.
  fileprivate func components(after start: String, before end: String) -> Substring? {
    guard let begin = firstRange(of: start)?.upperBound, let stop = self[begin...].firstRange(of: end)
    else { return nil }
    return self[begin..<stop.lowerBound]
  }
}

/// Each mount option with each other one. The manual's section OPTIONS TOGETHER lists the pairs that these tests except.
extension MountTests {
  @Suite struct OptionPairTests {
    /// The pairs that a mount refuses, with what its message must say.
    private static let refused: [(Set<String>, String)] =
      [
        (["a layer at a folder", "case=insensitive"], "'case=insensitive' and a layer at a folder")
      ] + refusedOwners

    private static let refusedOwners: [(Set<String>, String)] = {
      let users = ["squash_to_root", "squash_to_uid=N", "uid=N", "uidmapping=MAP"]
      let groups = ["gid=N", "gidmapping=MAP", "squash_to_gid=N", "squash_to_root"]
      func name(_ option: String) -> Substring { option.prefix { $0 != "=" } }
      var refused: [(Set<String>, String)] = []
      for names in [users, groups] {
        for (first, second) in names.flatMap({ first in names.filter { $0 > first }.map { (first, $0) } }) {
          refused.append(([first, second], "'\(name(first))' and '\(name(second))' cannot be combined"))
        }
      }
      for option in Set(users + groups + ["umask=OCTAL"]) {
        for (other, shown) in [
          ("writable", "writable"), ("writable=DIR", "writable"), ("strings=merge", "strings=merge"),
        ] {
          refused.append(([option, other], "'\(name(option))' and '\(shown)' cannot be combined"))
        }
      }
      return refused
    }()

    private func refusal(of options: [OptionOnTrial]) -> String? {
      Self.refused.first { $0.0.isSubset(of: options.map(\.text)) }?.1
    }

    private func setup(_ tree: OptionTree, _ options: [OptionOnTrial]) -> MountSetup {
      var setup = MountSetup(main: tree.main, point: tree.point, substitutions: [tree.top])
      setup.options = options.map { $0.argument(tree) }
      setup.environment["XDG_CONFIG_HOME"] = tree.configuration.text
      setup.environment["XDG_STATE_HOME"] = (tree.folder / "state").text
      return setup
    }

    private func expectRefusal(_ setup: MountSetup, _ message: String) throws {
      let outcome = try setup.command(foreground: true).run(timeout: 30)
      #expect(outcome.status == 2 && outcome.errorText.contains(message), "\(outcome.errorText)")
      #expect(try MountTable.bundlefs(at: setup.point) == nil)
    }

    private func expect(_ options: [OptionOnTrial]) throws {
      let tree = try OptionTree()
      let setup = setup(tree, options)
      if let message = refusal(of: options) { return try expectRefusal(setup, message) }
      try tree.main.setMode(0o755)
      try withMount(setup) { mount in
        try OptionTrial(tree: tree, view: mount.point, options: options, mount: mount).expectAll()
      }
    }

    /// The exceptions that the tests make, in the manual's words.
    private static let exceptions: Set<String> = [
      "writable and passthrough", "writable, strings=merge and passthrough", "writable and ro",
      "announce=on and ro, cache=none or cache=SECONDS", "control=none and list_routes or routes=FILE",
      "whiteouts=markers, trust_upper or workdir without writable", "passthrough and archives", "survive=off",
      "options of owners and writable or strings=merge", "two options of one owner",
      "ro or control=none", "case=insensitive and a layer at a folder",
    ]

    @Test("the manual names the exceptions, and no others")
    func manual() throws {
      let page = try (Installation.scripts / "share/man/bundlefs.8").readText()
      let section = try #require(page.components(after: ".SH OPTIONS TOGETHER\n", before: "\n.SH "))
      let lines = section.split(separator: "\n", omittingEmptySubsequences: false)
      let headings = zip(lines, lines.dropFirst()).filter { $0.0 == ".TP" }.map(\.1)
      let words = headings.map { $0.drop { $0 != " " }.dropFirst().replacing("\"", with: "") }
      let texts = words.map { $0.split(separator: " ").joined(separator: " ").replacing(" ,", with: ",") }
      #expect(Set(texts) == Self.exceptions)
    }

    @Test("each option works alone", .timeLimit(.minutes(2)))
    func alone() throws { for option in OptionOnTrial.all { try expect([option]) } }

    @Test("an option works with each other", .timeLimit(.minutes(3)), arguments: OptionOnTrial.all.indices)
    func pairs(index: Int) throws {
      let option = OptionOnTrial.all[index]
      for other in OptionOnTrial.all[(index + 1)...] where other.name != option.name {
        do { try expect([option, other]) } catch {
          throw TestFailure("\(option.text), \(other.text): \(error)")
        }
      }
    }

    /// Runs the checks again after a command on the mount, which needs a process that can be replaced.
    private func expect(
      _ option: OptionOnTrial, refusedWith refused: Set<String>,
      after command: (Mount, OptionTree) throws -> Outcome
    ) throws {
      let tree = try OptionTree()
      try withMount(setup(tree, [option])) { mount in
        var trial = OptionTrial(tree: tree, view: mount.point, options: [option], mount: mount)
        try trial.expectAll()
        let outcome = try command(mount, tree)
        #expect((outcome.status == 0) == !refused.contains(option.text), "\(option): \(outcome.errorText)")
        trial.round += 1
        try trial.expectAll()
      }
    }

    @Test("an option holds after an upgrade", .timeLimit(.minutes(2)), arguments: OptionOnTrial.all)
    func upgrade(option: OptionOnTrial) throws {
      try expect(option, refusedWith: ["survive=off"]) { mount, _ in
        try Command([try Binary.underTest(), "upgrade", mount.point]).run(timeout: 30)
      }
    }

    @Test(
      "an option holds after a change of the layers", .timeLimit(.minutes(2)), arguments: OptionOnTrial.all)
    func layers(option: OptionOnTrial) throws {
      try expect(option, refusedWith: ["survive=off", "ro", "control=none"]) { mount, tree in
        let further = try tree.folder.folder("further")
        try (further / "further.txt").write("further\n")
        let outcome = try Command([try Binary.underTest(), "layers", mount.point, "add", further])
          .run(timeout: 30)
        #expect((mount.point / "further.txt").exists == (outcome.status == 0))
        return outcome
      }
    }

    @Test("an option works in a mount for one program", .timeLimit(.minutes(2)), arguments: OptionOnTrial.all)
    func run(option: OptionOnTrial) throws {
      let tree = try OptionTree()
      let command = try setup(tree, [option]).command(foreground: false)
      let ready = tree.folder / "ready"
      let options = command.arguments[4]
      let child = try Child(
        Command(
          [
            try Binary.underTest(), "run", "-o", options, tree.main, "--", "bash", "-c",
            #": > "$0"; exec sleep 100"#, ready,
          ], environment: command.environment))
      defer { try? child.kill() }
      let isReady = eventually(within: 20) { ready.exists || child.status() != nil }
      #expect(isReady && child.status() == nil, "\(child.errorText)")
      let view = ByteString("/proc/\(child.pid)/root") / tree.main
      try OptionTrial(tree: tree, view: view, options: [option], mount: nil).expectAll()
    }
  }
}
