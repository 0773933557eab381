import Glibc
import Posix
import TestSupport
import Testing

/// Times that are set on merged directories.
extension MountTests {
  @Suite struct DirectoryTimeTests {
    private static let early = TimeSpec(seconds: 978_307_200, nanoseconds: 123_456_789)

    private func set(_ path: ByteString) throws {
      try Command(["touch", "-d", ByteString("@\(Self.early.seconds).123456789"), path]).check()
    }

    private func modified(_ path: ByteString) throws -> TimeSpec { try path.status().modified }

    @Test(
      "a time that is set on a merged directory shows, also in later mounts, until a part below changes",
      .timeLimit(.minutes(2)))
    func set() throws {
      let fixture = try Fixture()
      let folder = fixture.point / "folder"
      try withWritable(fixture: fixture) { mount, fixture in
        _ = try folder.names()
        try set(folder)
        #expect(try modified(folder) == Self.early)
        let former = mount.worker
        kill(former, SIGKILL)
        #expect(eventually(within: 20) { mount.worker != former && mount.worker != mount.process.pid })
        #expect(try modified(folder) == Self.early)
        let names = try folder.attributeNames()
        #expect(!names.contains("trusted.bundlefs.mtime") && !names.contains("user.bundlefs.mtime"))
        // A listing is dropped although a layer below has changed only.
        try (fixture.main / "folder/later").write("x")
        try mount.barrier()
        #expect(try folder.names().contains("later"))
        #expect(try modified(folder) == modified(fixture.main / "folder"))
        try set(folder)
        #expect(try modified(folder) == Self.early)
        try (folder / "new").write("x")
        #expect(try modified(folder) > Self.early)
        try set(folder)
      }
      for options in [[], ["writable"]] as [[ByteString]] {
        var setup = fixture.setup
        setup.options = options
        let seen = try withMount(setup) { _ in try modified(folder) }
        #expect(seen == Self.early, "\(options)")
      }
      #expect(try modified(fixture.main / "folder") > Self.early)
    }

    @Test("a directory that is copied up keeps the time that shows", .timeLimit(.minutes(1)))
    func copiedUp() throws {
      let fixture = try Fixture()
      try withWritable(fixture: fixture) { mount, _ in try set(mount.point / "folder") }
      var setup = fixture.setup
      setup.options = ["writable=" + fixture.folder / "top"]
      try withMount(setup) { mount in
        #expect(try modified(mount.point / "folder") == Self.early)
        try (mount.point / "folder/both.txt").setMode(0o600)
        #expect((fixture.folder / "top/folder/both.txt").exists)
        #expect(try modified(mount.point / "folder") == Self.early)
      }
    }

    @Test("the times of directories that cp copies over those of layers below show", .timeLimit(.minutes(1)))
    func copiedTree() throws {
      let fixture = try Fixture()
      let source = fixture.folder / "source"
      try (source / "only/deep").makeDirectories()
      for name in ["only/deep", "only", ""] as [ByteString] { try set(source / name) }
      try withWritable(fixture: fixture) { mount, _ in
        try Command(["cp", "-a", source / ".", mount.point]).check()
        for name in ["only/deep", "only", ""] as [ByteString] {
          #expect(try modified(mount.point / name) == Self.early, "\(name)")
        }
      }
    }

    @Test("without privileges the time is kept, too", .timeLimit(.minutes(1)))
    func unprivileged() throws {
      let fixture = try Fixture()
      let user: UInt32 = 65_534
      try Command(["chown", "-R", "65534:65534", fixture.folder.path]).check()
      var setup = fixture.setup
      setup.options = ["writable"]
      setup.user = user
      try withMount(setup) { mount in
        try Command(["touch", "-d", "@978307200.123456789", mount.point / "folder"]).asUser(user).check()
        let seen = try Command(["stat", "-c", "%.9Y", mount.point / "folder"]).asUser(user).check().outputText
        #expect(seen == "978307200.123456789\n")
      }
    }
  }
}
