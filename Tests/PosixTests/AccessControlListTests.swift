import Posix
import TestSupport
import Testing

@Suite struct AccessControlListTests {
  @Test("the algorithm of acl(5)")
  func algorithm() throws {
    // u::rw-, u:7:rwx, u:8:---, g::r--, g:70:-w-, m::rw-, o::--x
    let acl = try #require(
      AccessControlList(
        ACLValue.list(
          (.owner, 6, nil), (.user, 7, 7), (.user, 0, 8), (.owningGroup, 4, nil), (.group, 2, 70),
          (.mask, 6, nil),
          (.other, 1, nil))))
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
    "values of another form",
    arguments: [
      [], [2, 0, 0], [2, 0, 0, 0, 1], [UInt8](repeating: 0, count: 11), [2, 0, 0, 0, 3, 0, 7, 0, 0, 0, 0, 0],
    ])
  func malformed(_ value: [UInt8]) {
    #expect(AccessControlList(value) == nil)
  }
}
