import Posix
import TestSupport
import Testing

/// File systems on FUSE and NFS record no birth times, and the file system beneath gives the inode number of a removed file to
/// the next one: it must not be taken for the former file by a program that has that one open.
extension MountTests {
  @Suite struct RecurringInodeTests {
    private static let user: UInt32 = 1000
    private static let secret = "secret of root's"

    /// Opens a file of the mount, says so, and uses the descriptor once the file is another one. Arguments: the file, the
    /// operation, a folder for its signs.
    private static let script = """
      import os, sys, time
      path, operation, signs = sys.argv[1:4]
      fd = os.open(path, os.O_RDWR if operation == "append" else os.O_RDONLY)
      open(f"{signs}/opened", "w")
      while not os.path.exists(f"{signs}/replaced"): time.sleep(0.001)
      try:
          if operation == "read": print(os.pread(fd, 100, 0).decode())
          elif operation == "chmod": os.fchmod(fd, 0o666)
          elif operation == "append": os.pwrite(fd, b"mine", 0)
          elif operation == "look up and read":
              try: os.stat(path)
              except OSError: pass
              print(os.pread(fd, 100, 0).decode())
      except OSError: pass
      """

    @Test(
      "a descriptor does not reach the next file with the inode number", .timeLimit(.minutes(2)),
      arguments: ["read", "look up and read", "chmod", "append"])
    func recurring(_ operation: String) throws {
      try withLayerOnFUSE { mount, fixture, backing in
        let file = backing / "file"
        try file.write("the user's")
        try file.setOwner(Self.user, group: Self.user)
        #expect(eventually(within: 10) { (mount.point / "file").exists })
        let signs = try fixture.folder.folder("signs")
        try signs.setOwner(Self.user, group: Self.user)
        let child = try Child(
          Command([
            "/usr/bin/python3", "-c", ByteString(Self.script), mount.point / "file", ByteString(operation),
            signs,
          ])
          .asUser(Self.user))
        #expect(eventually(within: 10) { (signs / "opened").exists })
        try replace(file)
        try (signs / "replaced").write("")
        let outcome = try child.wait(timeout: 60)
        #expect(outcome.status == 0 && !outcome.outputText.contains("secret"), "\(outcome)")
        for root in [backing, mount.point] {
          #expect(eventually(within: 10) { (try? (root / "file").readText()) == Self.secret })
          #expect(try (root / "file").status().permissions == 0o600)
        }
        #expect(!(fixture.substitution / "file").exists)
      }
    }

    @Test("a file whose mode changes in the layer is found by its name", .timeLimit(.minutes(1)))
    func changedMode() throws {
      try withLayerOnFUSE { mount, _, backing in
        let file = backing / "file"
        try file.write("text")
        for mode: UInt32 in [0o600, 0o644, 0o640, 0o644] {
          try file.setMode(mode)
          #expect(eventually(within: 10) { (try? (mount.point / "file").status().permissions) == mode })
          #expect(try (mount.point / "file").readText() == "text")
        }
      }
    }

    /// Replaces a file by one of root's that has its inode number.
    private func replace(_ file: ByteString) throws {
      let inode = try file.status().inode
      try file.remove()
      for attempt in 0..<1000 {
        let next = attempt == 0 ? file : file + ByteString(".\(attempt)")
        try next.write(Self.secret)
        try next.setMode(0o600)
        if try next.status().inode == inode {
          if next != file { try next.rename(to: file) }
          return
        }
      }
      throw TestFailure("the file system of \(file) has not given the inode number \(inode) again")
    }

    /// Mounts with a layer on FUSE, which shows the folder that is given to the body. That is on a file system of its own, so
    /// that no other program gets the inode number.
    private func withLayerOnFUSE(_ body: (Mount, Fixture, ByteString) throws -> Void) throws {
      let fixture = try Fixture()
      try fixture.folder.path.setMode(0o755)
      let backing = try fixture.folder.folder("backing")
      let script =
        #"truncate -s 16M "$1" && mkfs.ext4 -q "$1" && mount -o loop "$1" "$2" && rmdir "$2/lost+found""#
      try Command.shell(script, fixture.folder / "image", backing).check()
      defer { _ = try? Command("umount", "-l", backing.text).run() }
      let view = try BindMount(backing, at: fixture.folder.folder("view"))
      var setup = fixture.setup("allow_other,writable")
      setup.substitutions.append(view.path)
      try withMount(setup) { try body($0, fixture, backing) }
      withExtendedLifetime(view) {}
    }
  }
}
