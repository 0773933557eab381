import Glibc
import Posix
import TestSupport
import Testing

/// Layers that other users may write to.
extension MountTests {
  @Suite struct UpperTrustTests {
    private static let user: UInt32 = 1000
    private static let work: ByteString = ".wh..wh.bundlefs-work"

    /// Mounts, and unmounts.
    /// - Returns: what the mounting command printed.
    private func mount(_ fixture: Fixture, _ options: ByteString...) throws -> Outcome {
      let mount = try DaemonMount(fixture.setupWith(options))
      let isMounted = try MountTable.bundlefs(at: fixture.point) != nil
      #expect(isMounted == (mount.outcome.status == 0), "\(options): \(mount.outcome.errorText)")
      if isMounted { try Command([Binary.underTest(), "unmount", fixture.point]).check() }
      return mount.outcome
    }

    private func expectRefusal(
      _ outcome: Outcome, naming words: String..., location: SourceLocation = #_sourceLocation
    ) {
      let text = outcome.errorText
      let isRefusal = outcome.status == 1 && text.split(separator: "\n").count == 1
      #expect(isRefusal, "\(outcome.status): \(text)", sourceLocation: location)
      for word in words { #expect(text.contains(word), "\(text)", sourceLocation: location) }
    }

    @Test(
      "root's mount for all users refuses a folder that others may write to", .timeLimit(.minutes(1)),
      arguments: [(0o757, 0, 0, "everyone"), (0o775, 0, 100, "group 100"), (0o700, 1000, 0, "user 1000")])
    func otherWriters(mode: UInt32, owner: UInt32, group: UInt32, name: String) throws {
      let fixture = try Fixture()
      try fixture.substitution.setOwner(owner, group: group)
      try fixture.substitution.setMode(mode)
      let refused = try mount(fixture, "writable", "allow_other")
      expectRefusal(refused, naming: fixture.substitution.text, name, "allow_other", "'-o trust_upper'")
      #expect(try fixture.substitution.names() == ["folder", "replaced.txt"])
      // Nobody else may enter the mount.
      #expect(try mount(fixture, "writable").status == 0)
      let trusted = try mount(fixture, "writable", "allow_other", "trust_upper")
      #expect(trusted.status == 0 && trusted.errorText.contains("warning"), "\(trusted.errorText)")
      try fixture.substitution.setOwner(0, group: 0)
      try fixture.substitution.setMode(0o755)
      let own = try mount(fixture, "writable", "allow_other")
      #expect(own.status == 0 && own.errorText.isEmpty, "\(own.errorText)")
    }

    @Test("a work folder of another user is refused, with what to do", .timeLimit(.minutes(1)))
    func foreignWorkFolder() throws {
      let fixture = try Fixture()
      let work = fixture.substitution / Self.work
      try fixture.substitution.setOwner(Self.user, group: Self.user)
      try Command.shell("umask 0; mkdir \"$1\"; : > \"$1/4194305-1\"", work).asUser(Self.user).check()
      let refused = try mount(fixture, "writable")
      expectRefusal(refused, naming: work.text, "user 1000", "remove it", "writable=DIR", "trust_upper")
      #expect(try work.names() == ["4194305-1"])
      #expect(try mount(fixture, "writable", "trust_upper").status == 0)
      #expect(!work.exists)
    }

    @Test("'override' refuses a work folder of another user", .timeLimit(.minutes(1)))
    func foreignWorkFolderOfCommand() throws {
      let fixture = try Fixture()
      let work = fixture.substitution / Self.work
      try work.makeDirectory()
      try work.setOwner(Self.user, group: Self.user)
      try withMount(fixture.setup) { mount in
        let command = try Command([Binary.underTest(), "override", mount.point, "plain.txt"])
        expectRefusal(try command.run(), naming: work.text, "user 1000", "run the command as")
        #expect(!(fixture.substitution / "plain.txt").exists)
        try work.removeDirectory()
        try command.check()
        #expect((fixture.substitution / "plain.txt").exists)
      }
    }

    @Test("the owner of the upper folder cannot enter root's work folder", .timeLimit(.minutes(1)))
    func closedWorkFolder() throws {
      let fixture = try Fixture()
      try fixture.substitution.setOwner(Self.user, group: Self.user)
      let secret = fixture.substitution / "secret"
      try secret.write("root's\n")
      try secret.setMode(0o600)
      try withWritable(fixture: fixture) { mount, fixture in
        let script = """
          cd "$1" || exit 9
          ls .wh* 2>/dev/null && exit 1
          : 2>/dev/null > .wh..wh.bundlefs-work/x && exit 2
          mv .wh..wh.bundlefs-work away && mkdir -m 777 .wh..wh.bundlefs-work || exit 3
          mv secret .wh..wh.bundlefs-work/ || exit 4
          cat away/whiteout 2>/dev/null && exit 5
          exit 0
          """
        #expect(try Command.shell(script, fixture.substitution).asUser(Self.user).run().status == 0)
        try (mount.point / "replaced.txt").remove()
        try (mount.point / "only/deep/file.txt").remove()
        try (mount.point / "plain.txt").rename(to: mount.point / "moved.txt")
        try (mount.point / "plain.txt").makeLink(to: "moved.txt")
        #expect((fixture.substitution / "replaced.txt").isWhiteout)
        #expect(try (fixture.substitution / "plain.txt").linkTarget() == "moved.txt")
        let moved = try (fixture.substitution / Self.work / "secret").status()
        #expect(moved.owner == 0 && moved.permissions == 0o600)
        #expect(try (fixture.substitution / Self.work).names() == ["secret"])
      }
    }

    @Test("a mount for all users warns of layers that others may write to", .timeLimit(.minutes(1)))
    func warning() throws {
      let fixture = try Fixture()
      let archive = fixture.folder / "archive.zip"
      try archive.write(ZipBuilder([.init("entry", Array("x".utf8))]).bytes)
      try archive.setMode(0o666)
      let third = try fixture.folder.folder("third")
      try fixture.substitution.setOwner(Self.user, group: Self.user)
      try fixture.main.setMode(0o777)
      let list = "substitution=" + third + ":" + archive
      let outcome = try mount(fixture, "allow_other", list)
      let text = outcome.errorText
      #expect(outcome.status == 0 && text.hasPrefix("bundlefs: warning: "), "\(text)")
      #expect(text.split(separator: "\n").count == 1 && !text.contains(third.text), "\(text)")
      #expect(text.contains("\(fixture.substitution) (user 1000), \(fixture.main) (everyone)"), "\(text)")
      #expect(try mount(fixture, list).errorText.isEmpty)
    }
  }
}

extension Fixture {
  fileprivate func setupWith(_ options: [ByteString]) -> MountSetup {
    var setup = setup
    setup.options = options
    return setup
  }
}
