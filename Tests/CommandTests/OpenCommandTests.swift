import Posix
import Testing

@testable import bundlefs

/// The mounts that `open` uses.
@Suite struct OpenCommandTests {
  private func entries(_ lines: String...) throws -> [MountTableEntry] {
    try lines.map { try #require(MountTableEntry(line: Array($0.utf8)[...])) }
  }

  private func line(_ mountPoint: String, user: Int, type: String = "fuse.bundlefs") -> String {
    "36 35 0:45 / \(mountPoint) rw,nosuid shared:1 - \(type) bundle ro,user_id=\(user),group_id=0,allow_other"
  }

  @Test("uses the user's and root's mounts, newest first, and only the topmost at a mount point")
  func selection() throws {
    let table = try entries(
      line("/a", user: 7), line("/root", user: 0), line("/other", user: 8), line("/b", user: 7),
      line("/b", user: 7, type: "fuse.sshfs"), line("/c", user: 7), line("/c", user: 8))
    #expect(
      try OpenCommand.mounts(among: table, of: 7).map(\.mountPoint.shown) == ["/root", "/a"])
    #expect(try OpenCommand.mounts(among: table, of: 0).map(\.mountPoint.shown) == ["/root"])
  }

  @Test("without a usable mount the error says why")
  func none() throws {
    func message(_ table: [MountTableEntry]) throws -> String {
      try #require(throws: Failure.self) { try OpenCommand.mounts(among: table, of: 7) }.message
    }
    #expect(try message([]) == "no bundlefs is mounted")
    #expect(try message(try entries(line("/x", user: 7, type: "fuse.sshfs"))) == "no bundlefs is mounted")
    let others = try message(try entries(line("/x", user: 8)))
    #expect(others.contains("user 8") && others.contains("/x") && others != "no bundlefs is mounted")
  }
}
