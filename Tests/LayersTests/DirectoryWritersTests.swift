import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

@Suite struct DirectoryWritersTests {
  private func writers(
    _ mode: UInt32, owner: UInt32 = 0, group: UInt32 = 0, acl: [UInt8]? = nil, besides user: UInt32 = 0
  ) throws -> DirectoryWriters? {
    let folder = try TemporaryFolder()
    try folder.path.setOwner(owner, group: group)
    try folder.path.setMode(mode)
    if let acl { try folder.path.setAttribute("system.posix_acl_access", acl) }
    return try DirectoryLayer(path: folder.path.bytes, index: 0, covered: nil).root.writers(besides: user)
  }

  @Test("owner, group and mode say who else may write")
  func modes() throws {
    #expect(try writers(0o755) == nil && writers(0o775) == nil && writers(0o700, group: 100) == nil)
    #expect(try writers(0o757) == .everyone && writers(0o1777) == .everyone)
    #expect(try writers(0o775, group: 100) == .group(100) && writers(0o755, group: 100) == nil)
    #expect(try writers(0o755, owner: 1000) == .user(1000) && writers(0o000, owner: 1000) == .user(1000))
    #expect(try writers(0o755, owner: 1000, besides: 1000) == nil && writers(0o755, besides: 1000) == nil)
    #expect(try writers(0o755, owner: 1001, besides: 1000) == .user(1001))
  }

  @Test("an ACL says who else may write")
  func accessLists() throws {
    func acl(
      _ tag: ACLValue.Tag, _ id: UInt32, _ permissions: UInt8, group: UInt8 = 5, mask: UInt8 = 7
    ) -> [UInt8] {
      let (owningGroup, mask) = (
        (ACLValue.Tag.owningGroup, group, UInt32?.none), (ACLValue.Tag.mask, mask, UInt32?.none)
      )
      let named = (tag, permissions, UInt32?.some(id))
      return tag == .user
        ? ACLValue.list((.owner, 7, nil), named, owningGroup, mask, (.other, 5, nil))
        : ACLValue.list((.owner, 7, nil), owningGroup, named, mask, (.other, 5, nil))
    }
    #expect(try writers(0o755, acl: acl(.user, 1000, 7)) == .user(1000))
    #expect(try writers(0o755, acl: acl(.user, 1000, 7), besides: 1000) == nil)
    #expect(try writers(0o755, acl: acl(.group, 100, 7)) == .group(100))
    #expect(try writers(0o755, acl: acl(.user, 1000, 7, mask: 5)) == nil, "the mask takes it away")
    #expect(try writers(0o755, acl: acl(.user, 1000, 5)) == nil)
    #expect(try writers(0o755, group: 100, acl: acl(.user, 1000, 5, group: 7)) == .group(100))
    #expect(try writers(0o755, acl: acl(.user, 0, 7, group: 7)) == nil)
  }
}
