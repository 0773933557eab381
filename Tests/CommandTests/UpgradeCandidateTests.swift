import Posix
import Testing

@testable import bundlefs

/// Which programs a mount may be handed over to.
@Suite struct UpgradeCandidateTests {
  private func objection(
    _ mode: UInt32, owner: UInt32 = 1000, group: UInt32 = 1000, user: UInt32 = 1000
  ) -> String? {
    let status = FileStatus(
      regularFile: mode, owner: owner, group: group, size: 1,
      modified: TimeSpec(seconds: 0, nanoseconds: 0))
    return UpgradeCandidate.objection(to: status, user: user, group: 1000)
  }

  @Test("a program of root's or of the mount's owner that no one else can write is trusted")
  func trusted() {
    #expect(objection(0o755) == nil && objection(0o700, owner: 0, group: 0) == nil)
    #expect(objection(0o4755) == nil && objection(0o2755) == nil)
    #expect(objection(0o755, owner: 0, group: 0, user: 0) == nil)
  }

  @Test("one of other users, one that others can write, and one that runs as others is not")
  func untrusted() {
    #expect(objection(0o755, owner: 1001)?.contains("user 1001") == true)
    #expect(objection(0o755, user: 0)?.contains("user 1000") == true)
    for mode: UInt32 in [0o775, 0o757, 0o722] { #expect(objection(mode)?.contains("write") == true) }
    #expect(objection(0o4755, owner: 0)?.contains("run as user 0") == true)
    #expect(objection(0o2755, group: 1001)?.contains("run as group 1001") == true)
  }

  @Test("only a regular file is a program")
  func kinds() {
    let folder = FileStatus(
      directory: 0o755, owner: 1000, group: 1000, modified: TimeSpec(seconds: 0, nanoseconds: 0),
      changed: TimeSpec(seconds: 0, nanoseconds: 0))
    #expect(UpgradeCandidate.objection(to: folder, user: 1000, group: 1000) != nil)
  }
}
