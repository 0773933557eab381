import Glibc
import Posix
import TestSupport
import Testing

/// Every change fails with EROFS.
extension MountTests {
  @Suite struct ReadOnlyTests {
    @Test("creating entries fails with EROFS", .timeLimit(.minutes(1)))
    func creating() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let new = mount.point / "new"
        try expectErrno(.readOnlyFileSystem, "create") { try new.write("x") }
        try expectErrno(.readOnlyFileSystem, "mkdir") { try new.makeDirectory() }
        try expectErrno(.readOnlyFileSystem, "symlink") { try new.makeLink(to: "plain.txt") }
        try expectErrno(.readOnlyFileSystem, "link") { try new.makeHardLink(of: mount.point / "plain.txt") }
        try expectErrno(.readOnlyFileSystem, "mknod") {
          try new.makeNode(mode: FileKind.fifo.rawValue | 0o600)
        }
        #expect(try mount.names() == Fixture.rootNames)
        #expect(!(fixture.main / "new").exists && !(fixture.substitution / "new").exists)
      }
    }

    @Test("removing and renaming entries fails with EROFS", .timeLimit(.minutes(1)))
    func removing() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let file = mount.point / "plain.txt"
        try expectErrno(.readOnlyFileSystem, "unlink") { try file.remove() }
        try expectErrno(.readOnlyFileSystem, "rmdir") { try (mount.point / "only/deep").removeDirectory() }
        try expectErrno(.readOnlyFileSystem, "rename") { try file.rename(to: mount.point / "new") }
        try expectErrno(.readOnlyFileSystem, "rename over") {
          try file.rename(to: mount.point / "replaced.txt")
        }
        try expectFixture(at: mount.point)
      }
    }

    @Test("changing entries fails with EROFS", .timeLimit(.minutes(1)))
    func changing() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let file = mount.point / "plain.txt"
        try expectErrno(.readOnlyFileSystem, "chmod") { try file.setMode(0o600) }
        try expectErrno(.readOnlyFileSystem, "chown") { try file.setOwner(1, group: 1) }
        try expectErrno(.readOnlyFileSystem, "truncate") { try file.setSize(0) }
        try expectErrno(.readOnlyFileSystem, "utimens") {
          try file.setModified(TimeSpec(seconds: 1, nanoseconds: 1))
        }
        try expectErrno(.readOnlyFileSystem, "setxattr") { try file.setAttribute("user.x", [1]) }
        try (fixture.main / "plain.txt").setAttribute("user.y", [1])
        try expectErrno(.readOnlyFileSystem, "removexattr") { try file.removeAttribute("user.y") }
        try expectErrno(.readOnlyFileSystem, "open with O_TRUNC, and write") { try file.write("x") }
        try expectErrno(.readOnlyFileSystem, "write") { try file.overwrite([1], at: 0) }
        try expectErrno(.readOnlyFileSystem, "append") {
          try file.withOpen(O_WRONLY | O_APPEND) { open in
            if write(open, [1], 1) < 0 { throw Errno.current }
          }
        }
        try expectFixture(at: mount.point)
        #expect(try (fixture.main / "plain.txt").status().permissions == 0o644)
      }
    }
  }
}
