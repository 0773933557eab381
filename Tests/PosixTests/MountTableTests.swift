import Glibc
import Posix
import TestSupport
import Testing

@Suite struct MountTableTests {
  private func entry(_ line: String) -> MountTableEntry? { MountTableEntry(line: Array(line.utf8)[...]) }

  @Test("the user is read from the super options of FUSE mounts only")
  func user() {
    let start = "36 35 0:45 / /a\\040b rw,user_id=9 shared:1 master:2 -"
    let mine = entry("\(start) fuse.bundlefs user_id=5 rw,user_id=1000,group_id=3")
    #expect(mine?.user == 1000 && mine?.isBundlefs == true && mine?.mountPoint == Array("/a b".utf8))
    #expect(mine?.group == 3 && mine?.source == Array("user_id=5".utf8))
    #expect(entry("\(start) fuse a\\040b rw")?.source == Array("a b".utf8))
    #expect(entry("\(start) ext4 source rw,user_id=1000")?.user == nil)
    #expect(entry("\(start) fuse source rw,group_id=0")?.user == nil)
    #expect(entry("\(start) fuse source rw,user_id=x")?.user == nil)
    #expect(entry("\(start) fuse")?.type == "fuse")
    #expect(entry("36 35 0:45 / /a rw") == nil)
  }

  @Test("openRegularFile opens regular files only, and does not block")
  func regular() throws {
    let folder = try TemporaryFolder()
    try (folder / "file").write("x")
    try (folder / "link").makeLink(to: "file")
    _ = try folder.folder("folder")
    #expect(mkfifo((folder / "fifo").text, 0o600) == 0)
    let directory = try withCName(folder.path.bytes) { name throws(Errno) in
      try Descriptor.open(name, [.pathOnly, .directory])
    }
    #expect(try directory.openRegularFile("file", [.read]).readAll() == Array("x".utf8))
    for (name, error) in [
      ("link", Errno.tooManySymbolicLinkLevels), ("folder", .notSupported), ("fifo", .notSupported),
      ("none", .noSuchFileOrDirectory),
    ] {
      #expect(throws: error, "\(name)") { _ = try directory.openRegularFile(name, [.readWrite]).rawValue }
    }
  }
}
