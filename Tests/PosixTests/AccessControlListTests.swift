import Posix
import Testing

@Suite struct AccessControlListTests {
  /// Entries of tag, permissions and ID, as the kernel has them in `system.posix_acl_access`.
  private func list(_ entries: (UInt16, UInt16, UInt32)...) throws -> AccessControlList {
    var value: [UInt8] = [2, 0, 0, 0]
    for (tag, permissions, id) in entries {
      withUnsafeBytes(of: tag.littleEndian) { value += $0 }
      withUnsafeBytes(of: permissions.littleEndian) { value += $0 }
      withUnsafeBytes(of: id.littleEndian) { value += $0 }
    }
    return try #require(AccessControlList(value))
  }

  @Test("the algorithm of acl(5)")
  func algorithm() throws {
    // u::rw-, u:7:rwx, u:8:---, g::r--, g:70:-w-, m::rw-, o::--x
    let acl = try list(
      (0x01, 6, .max), (0x02, 7, 7), (0x02, 0, 8), (0x04, 4, .max), (0x08, 2, 70), (0x10, 6, .max),
      (0x20, 1, .max))
    func allows(_ wanted: UInt32, _ user: UInt32, _ groups: Set<UInt32> = []) -> Bool {
      acl.allows(wanted, user: user, owner: 1, group: 60, isMember: groups.contains)
    }
    #expect(allows(6, 1) && !allows(1, 1, [60, 70]))
    // The mask takes the execute permission away.
    #expect(allows(6, 7) && !allows(1, 7))
    // A named user's entry counts, whatever its groups have.
    #expect(!allows(4, 8, [60]) && !allows(1, 8))
    #expect(allows(4, 9, [60]) && !allows(2, 9, [60]) && !allows(1, 9, [60]))
    #expect(allows(2, 9, [70]))
    // No single group has both.
    #expect(!allows(6, 9, [60, 70]) && allows(4, 9, [60, 70]))
    #expect(allows(1, 9) && !allows(4, 9))
  }

  @Test(
    "values of another form", arguments: [[], [2, 0, 0], [2, 0, 0, 0, 1], [UInt8](repeating: 0, count: 11)])
  func malformed(_ value: [UInt8]) {
    #expect(AccessControlList(value) == nil)
  }
}
