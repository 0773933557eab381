import Posix
import Testing

@testable import bundlefs

/// Which mounts `open` asks.
@Suite struct OpenCommandTests {
  private func entries(_ lines: String...) throws -> [MountTableEntry] {
    try lines.map { try #require(MountTableEntry(line: Array($0.utf8)[...])) }
  }

  private func line(_ place: String, user: Int, type: String = "fuse.bundlefs") -> String {
    "36 35 0:45 / \(place) rw,nosuid shared:1 - \(type) bundle ro,user_id=\(user),group_id=0,allow_other"
  }

  @Test("mine and root's, the newest first, of those over each other the topmost")
  func choice() throws {
    let table = try entries(
      line("/a", user: 7), line("/root", user: 0), line("/other", user: 8), line("/b", user: 7),
      line("/b", user: 7, type: "fuse.sshfs"), line("/c", user: 7), line("/c", user: 8))
    #expect(
      try OpenCommand.mounts(among: table, of: 7).map(\.mountPoint.shown) == ["/root", "/a"])
    #expect(try OpenCommand.mounts(among: table, of: 0).map(\.mountPoint.shown) == ["/root"])
  }

  @Test("without any it says why")
  func none() throws {
    func words(_ table: [MountTableEntry]) throws -> String {
      try #require(throws: Failure.self) { try OpenCommand.mounts(among: table, of: 7) }.message
    }
    #expect(try words([]) == "no bundlefs is mounted")
    #expect(try words(try entries(line("/x", user: 7, type: "fuse.sshfs"))) == "no bundlefs is mounted")
    let others = try words(try entries(line("/x", user: 8)))
    #expect(others.contains("user 8") && others.contains("/x") && others != "no bundlefs is mounted")
  }
}
