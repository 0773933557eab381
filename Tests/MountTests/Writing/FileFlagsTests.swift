import Glibc
import Posix
import TestSupport
import Testing

/// The flags of chattr(1).
extension MountTests {
  @Suite struct FileFlagsTests {
    /// A writable mount over a layer with an immutable file, an append-only one and an immutable folder.
    private func withFlags(_ options: ByteString..., body: (Mount, Fixture) throws -> Void) throws {
      let fixture = try Fixture()
      defer { _ = try? Command(["chattr", "-R", "-ia", fixture.folder.path]).run() }
      for name in ["immutable", "appended", "other"] as [ByteString] {
        try (fixture.main / name).write("old\n")
      }
      try (fixture.main / "closed").makeDirectory()
      try (fixture.main / "closed" / "file").write("old\n")
      try Command("chattr", "+i", (fixture.main / "immutable").text, (fixture.main / "closed").text).check()
      try Command("chattr", "+a", (fixture.main / "appended").text).check()
      var setup = fixture.setup
      setup.options = ["writable"] + options
      try withMount(setup) { try body($0, fixture) }
    }

    /// The letters that lsattr(1) shows for a path, without `e`, which the file system sets.
    private func flags(of path: ByteString) throws -> String {
      let words = try Command("lsattr", "-d", path.text).check().outputText.split(separator: " ")
      return words[0].filter { $0 != "-" && $0 != "e" }
    }

    private func fails(_ script: String, _ mount: Mount) throws -> Bool {
      let outcome = try Command.shell(script, mount.point).run(timeout: 20)
      return outcome.status != 0 && outcome.errorText.contains("Operation not permitted")
    }

    @Test(
      "an immutable file of a layer below is not changed, renamed, linked or removed",
      .timeLimit(.minutes(1)),
      arguments: [
        "echo x >> immutable", "echo x > immutable", ": 3<> immutable; echo x >&3", "rm -f immutable",
        "mv immutable new", "mv other immutable", "ln immutable new", "chmod 600 immutable",
        "touch immutable", "truncate -s 1 immutable", "setfattr -n user.a -v b immutable",
        "echo x > closed/new", "rm -f closed/file", "mv closed/file new", "chmod 700 closed", "rm -rf closed",
      ])
    func immutable(script: String) throws {
      try withFlags { mount, fixture in
        let before = try fixture.substitution.names()
        #expect(try fails("cd \"$1\" && exec 3<> immutable && \(script)", mount))
        #expect(try (mount.point / "immutable").readText() == "old\n")
        #expect(try (mount.point / "closed").names() == ["file"])
        #expect(try fixture.substitution.names().filter { $0 != "other" } == before)
      }
    }

    @Test("a file of a layer below that can only be appended to stays so", .timeLimit(.minutes(1)))
    func appendOnly() throws {
      try withFlags { mount, fixture in
        let file = mount.point / "appended"
        for script in ["rm -f", "truncate -s 0", "chmod 600", "echo x 1<>", "echo x >"] {
          #expect(try fails("\(script) \"$1/appended\"", mount), "\(script)")
        }
        for line in ["one", "two"] {
          try Command.shell("echo \(line) >> \"$1/appended\"", mount.point).check()
          #expect(try flags(of: file) == "a")
        }
        #expect(try file.readText() == "old\none\ntwo\n")
        #expect(try (fixture.main / "appended").readText() == "old\n")
        for script in ["rm -f", "truncate -s 0", "chmod 600", "echo x 1<>", "echo x >"] {
          #expect(try fails("\(script) \"$1/appended\"", mount), "\(script)")
        }
        try Command("chattr", "-a", file.text).check()
        try file.write("new\n")
        #expect(try file.readText() == "new\n")
      }
    }

    @Test("lsattr shows the visible file's flags, chattr sets those of its copy", .timeLimit(.minutes(1)))
    func change() throws {
      try withFlags { mount, fixture in
        #expect(try flags(of: mount.point / "immutable") == "i")
        #expect(try flags(of: mount.point / "closed") == "i")
        #expect(try flags(of: mount.point / "other") == "")
        for path in ["immutable", "other", "closed"] as [ByteString] {
          try Command("chattr", "-i", "+d", (mount.point / path).text).check()
          #expect(try flags(of: mount.point / path) == "d")
          #expect(try flags(of: fixture.substitution / path) == "d")
        }
        #expect(try flags(of: fixture.main / "immutable") == "i")
        #expect(try flags(of: fixture.main / "other") == "")
        try (mount.point / "immutable").write("new\n")
        try (mount.point / "closed" / "new").write("new\n")
        try Command("chattr", "+i", (mount.point / "immutable").text).check()
        #expect(try fails("echo x >> \"$1/immutable\"", mount))
        #expect(try fails("rm -f \"$1/immutable\"", mount))
        #expect(try (mount.point / "immutable").readText() == "new\n")
      }
    }

    @Test("nothing is removed from a directory to which entries can only be added", .timeLimit(.minutes(1)))
    func appendOnlyDirectory() throws {
      try withFlags { mount, _ in
        try Command("chattr", "+a", (mount.point / "folder").text).check()
        try (mount.point / "folder" / "new").write("new\n")
        for name in ["new", "inner.txt", "both.txt"] {
          #expect(try fails("rm -f \"$1/folder/\(name)\"", mount), "\(name)")
          #expect(try fails("mv \"$1/folder/\(name)\" \"$1\"", mount), "\(name)")
        }
      }
    }

    @Test("users without the capability set and clear no protection", .timeLimit(.minutes(1)))
    func capability() throws {
      try withFlags("allow_other", "trust_upper") { mount, fixture in
        for name in ["immutable", "appended", "other"] as [ByteString] {
          try Command("chattr", "-ia", (fixture.main / name).text).check()
          try #require(chown((fixture.main / name).text, 1234, 1234) == 0)
        }
        try Command("chattr", "+i", (fixture.main / "immutable").text).check()
        func change(_ flag: String, _ name: String) throws -> Int {
          try Command(
            "setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", "chattr", flag,
            (mount.point / ByteString(name)).text
          ).run().status
        }
        #expect(
          try change("-i", "immutable") != 0 && change("+i", "other") != 0 && change("+a", "other") != 0)
        #expect(try change("+d", "other") == 0 && change("+d", "replaced.txt") != 0)
        #expect(try flags(of: mount.point / "immutable") == "i" && flags(of: mount.point / "other") == "d")
      }
    }

    @Test("a read-only mount shows flags and sets none", .timeLimit(.minutes(1)))
    func readOnly() throws {
      let fixture = try Fixture()
      defer { _ = try? Command(["chattr", "-R", "-i", fixture.main]).run() }
      try Command("chattr", "+i", (fixture.main / "plain.txt").text).check()
      try withMount(fixture.setup) { mount in
        #expect(try flags(of: mount.point / "plain.txt") == "i")
        let outcome = try Command("chattr", "-i", (mount.point / "plain.txt").text).run()
        #expect(outcome.status != 0 && outcome.errorText.contains("Read-only file system"))
      }
    }
  }
}
