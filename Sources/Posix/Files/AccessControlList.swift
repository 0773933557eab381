/// An ACL as acl(5) describes it: the value of `system.posix_acl_access`, a header of 4 bytes and 8 bytes for each entry:
/// tag (2 bytes), permissions (2), ID (4).
public struct AccessControlList: Sendable, Equatable {
  private struct Entry: Equatable {
    let tag: UInt16
    let permissions: UInt32
    let id: UInt32
  }

  private enum Tag {
    static let owner: UInt16 = 0x01
    static let user: UInt16 = 0x02
    static let owningGroup: UInt16 = 0x04
    static let group: UInt16 = 0x08
    static let mask: UInt16 = 0x10
    static let other: UInt16 = 0x20
  }

  private var entries: [Entry] = []

  /// - Returns: nil if the value has no such form.
  public init?(_ value: [UInt8]) {
    guard value.count >= 4, value.count % 8 == 4 else { return nil }
    value.withUnsafeBytes { bytes in
      for offset in stride(from: 4, to: bytes.count, by: 8) {
        func word<Word: FixedWidthInteger>(_ place: Int, _: Word.Type) -> Word {
          Word(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + place, as: Word.self))
        }
        entries.append(
          Entry(
            tag: word(0, UInt16.self), permissions: UInt32(word(2, UInt16.self)) & 7, id: word(4, UInt32.self)
          ))
      }
    }
  }

  /// Whether a user has all of some permissions, by the algorithm of acl(5), "Access check algorithm".
  /// - Parameters:
  ///   - wanted: bits of 4 (read), 2 (write) and 1 (search or execute).
  ///   - user: the user ID.
  ///   - owner: the owner of the entry that has the ACL.
  ///   - group: its group.
  ///   - isMember: whether the user is in a group.
  public func allows(
    _ wanted: UInt32, user: UInt32, owner: UInt32, group: UInt32, isMember: (UInt32) -> Bool
  ) -> Bool {
    let mask = entries.first { $0.tag == Tag.mask }?.permissions ?? 7
    func grants(_ permissions: UInt32) -> Bool { permissions & wanted == wanted }
    if user == owner { return grants(entries.first { $0.tag == Tag.owner }?.permissions ?? 0) }
    if let named = entries.first(where: { $0.tag == Tag.user && $0.id == user }) {
      return grants(named.permissions & mask)
    }
    let groups = entries.filter {
      ($0.tag == Tag.owningGroup && isMember(group)) || ($0.tag == Tag.group && isMember($0.id))
    }
    if !groups.isEmpty { return groups.contains { grants($0.permissions & mask) } }
    return grants(entries.first { $0.tag == Tag.other }?.permissions ?? 0)
  }
}
