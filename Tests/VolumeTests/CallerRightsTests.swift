import Glibc
import Posix
import Testing

@testable import Fuse
@testable import Volume

/// Whose rights a program has that writes to the control file.
@Suite struct CallerRightsTests {
  @Test(
    "a process of one user is told from a set-user-ID program",
    arguments: [
      ("Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n", true), ("Uid:\t65534\t0\t0\t0\n", false),
      ("Uid:\t0\t0\t65534\t0\n", false), ("Uid:\t5\t5\t5\t5", true), ("Uid:\t5\n", false), ("", false),
      ("Gid:\t0\t0\t0\t0\n", false),
    ])
  func users(status: String, hasOneUser: Bool) {
    #expect(Caller.hasOneUser(Array(status.utf8)) == hasOneUser)
  }

  @Test("AT_SECURE is found among the words, and counts as set where it is missing")
  func secure() {
    func words(_ words: [UInt]) -> [UInt8] { words.withUnsafeBytes { Array($0) } }
    #expect(!Caller.isSecure(words([6, 4096, 23, 0, 0, 0])))
    #expect(Caller.isSecure(words([6, 4096, 23, 1, 0, 0])))
    #expect(Caller.isSecure(words([6, 23, 0, 0])), "23 is a value here")
    #expect(Caller.isSecure([]) && Caller.isSecure([23]))
  }

  @Test("this process has its own rights, and one that is gone has none")
  func processes() {
    #expect(Caller(user: getuid(), thread: Thread.currentID).hasOwnRights)
    #expect(!Caller(user: 0, thread: 0).hasOwnRights)
    #expect(!Caller(user: 0, thread: .max).hasOwnRights)
  }
}
