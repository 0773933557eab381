import Glibc
import Posix
import TestSupport
import Testing

/// What a user reaches by a layer that he may write to.
extension MountTests {
  @Suite struct LayerTrustTests {
    private static let user: UInt32 = 1000

    @Test("a user's layer gives him no rights to the files below it", .timeLimit(.minutes(1)))
    func below() throws {
      let fixture = try Fixture()
      let secret = fixture.main / "private"
      try secret.makeDirectory()
      for (name, mode) in [("open", 0o644), ("closed", 0o600), ("program", 0o4755)] as [(ByteString, UInt32)]
      {
        try (secret / name).write("root's\n")
        try (secret / name).setMode(mode)
      }
      try secret.setMode(0o700)
      let own = fixture.substitution / "private"
      try own.makeDirectory()
      try (own / "own").write("own\n")
      for path in [fixture.substitution, own, own / "own"] {
        try path.setOwner(Self.user, group: Self.user)
      }
      for options in ["allow_other", "allow_other,writable=" + fixture.folder / "changes"] as [ByteString] {
        try withMount(fixture.setup(options)) { mount in
          let folder = mount.point / "private"
          try asFileSystemUser(Self.user) {
            // His directory's mode lets him in, as in overlayfs.
            #expect(try folder.names() == ["closed", "open", "own", "program"])
            #expect(try (folder / "open").readText() == "root's\n" && (folder / "own").readText() == "own\n")
            try expectErrno(.permissionDenied) { _ = try (folder / "closed").read() }
            try expectErrno(.notPermitted) { try (folder / "closed").setMode(0o644) }
            try expectErrno(.permissionDenied) { try (folder / "program").overwrite([1], at: 0) }
          }
          let entry = try #require(try MountTable.bundlefs(at: mount.point))
          #expect(entry.options.split(separator: ",").contains("nosuid"), "\(entry.options)")
        }
      }
      #expect(try (secret / "program").status().permissions == 0o4755)
    }

    @Test(
      "another folder in the place of the upper one takes no changes unless it is as trusted",
      .timeLimit(.minutes(1)), arguments: [true, false])
    func replacedUpper(isForeign: Bool) throws {
      let fixture = try Fixture()
      let parent = try fixture.folder.folder("parent")
      try parent.setOwner(Self.user, group: Self.user)
      let (upper, away) = (parent / "upper", parent / "away")
      try upper.makeDirectory()
      try withMount(fixture.setup("allow_other", "writable=" + upper)) { mount in
        try (mount.point / "first").write("x")
        let mode = isForeign ? "777" : "755"
        let move = Command.shell("mv \"$1\" \"$2\" && mkdir -m \(mode) \"$1\"", upper, away)
        try (isForeign ? move.asUser(Self.user) : move).check()
        try mount.barrier()
        try (mount.point / "second").write("x")
        try (mount.point / "plain.txt").remove()
        let (used, unused) = isForeign ? (away, upper) : (upper, away)
        #expect((used / "second").exists && (used / "plain.txt").isWhiteout)
        #expect(!(unused / "second").exists && !(unused / "plain.txt").exists)
        if isForeign {
          #expect((mount.point / "first").exists)
          #expect(try mount.command("status").outputText.contains("moved"))
        }
      }
    }
  }
}
