import Glibc
import Posix
import TestSupport
import Testing

/// The end of a daemon unmounts its own mount, wherever that is, and no other one.
extension MountTests {
  @Suite struct OwnMountTests {
    /// Where the mount or its path goes while the daemon runs.
    enum Change: String, CaseIterable, Sendable {
      case renamed, moved, covered
    }

    /// Makes a private copy of the folder's mount, so that mounts in it can be moved.
    private func withPrivateMount(of folder: ByteString, _ body: () throws -> Void) throws {
      try Command.shell(#"mount --bind "$1" "$1" && mount --make-private "$1""#, folder).check()
      defer { MountTable.clear(below: folder) }
      try body()
    }

    @Test(
      "SIGTERM leaves another file system at the path", .timeLimit(.minutes(1)), arguments: Change.allCases)
    func otherMount(change: Change) throws {
      let folder = try TemporaryFolder()
      let area = try folder.folder("area")
      try withPrivateMount(of: area) {
        let main = area / "main"
        for name in ["main", "parent", "parent/point", "other"] as [ByteString] {
          try (area / name).makeDirectory()
        }
        try (main / "file").write("main's")
        let point = area / "parent/point"
        let mount = try Mount(MountSetup(main: main, point: point))
        let script =
          switch change {
          case .renamed: #"mv parent renamed && mkdir -p parent/point"#
          case .moved: #"mount --move parent/point other"#
          case .covered: ""
          }
        try Command.shell("set -e; cd \"$1\"\n\(script)\nmount -t tmpfs theirs parent/point", area).check()
        try (point / "theirs").write("theirs")
        mount.process.signal(SIGTERM)
        let outcome = try mount.process.wait(timeout: 20)
        #expect(outcome.status == 0)
        #expect(try (point / "theirs").readText() == "theirs")
        let left = try MountTable.entries().filter { $0.type == "fuse.bundlefs" && $0.point.hasPrefix(area) }
        // A mount that is covered cannot be unmounted without the one over it.
        #expect(left.count == (change == .covered ? 1 : 0), "\(left)")
        #expect(outcome.errorText.contains("not unmounted") == (change == .covered), "\(outcome.errorText)")
      }
    }

    @Test("what a daemon left under another mount is cleared once that is gone", .timeLimit(.minutes(1)))
    func uncovered() throws {
      let fixture = try Fixture()
      let mount = try Mount(fixture.setup)
      try Command("mount", "-t", "tmpfs", "theirs", fixture.point.text).check()
      mount.process.signal(SIGTERM)
      try mount.waitForEnd()
      try Command("umount", fixture.point.text).check()
      let next = try DaemonMount(fixture.setup)
      #expect(next.outcome.status == 0, "\(next.outcome.errorText)")
      try expectFixture(at: fixture.point)
      try Command([try Binary.underTest(), "unmount", fixture.point]).check()
      #expect(try MountTable.entry(at: fixture.point) == nil)
    }

    @Test("a user's daemon unmounts its mount after it was renamed", .timeLimit(.minutes(1)))
    func user() throws {
      let fixture = try Fixture()
      try withOpenDevice {
        var setup = try UnprivilegedTests().userSetup(fixture)
        let parent = try fixture.folder.folder("parent")
        setup.point = parent / "point"
        try setup.point.makeDirectory()
        try Command("chown", "-R", "\(UnprivilegedTests.nobody)", parent.text).check()
        let mount = try Mount(setup)
        let renamed = fixture.folder / "renamed"
        defer { MountTable.clear(below: fixture.folder.path) }
        try parent.rename(to: renamed)
        try setup.point.makeDirectories()
        try Command("mount", "-t", "tmpfs", "theirs", setup.point.text).check()
        mount.process.signal(SIGTERM)
        try mount.waitForEnd()
        #expect(try MountTable.entry(at: renamed / "point") == nil)
        #expect(try MountTable.entry(at: setup.point)?.type == "tmpfs")
      }
    }
  }
}
