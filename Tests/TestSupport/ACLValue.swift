/// Values of the extended attributes that hold ACLs; see acl(5).
public enum ACLValue {
  /// Whom an entry is for, numbered as the kernel does.
  public enum Tag: UInt8, Sendable {
    case owner = 1
    case user = 2
    case owningGroup = 4
    case group = 8
    case mask = 16
    case other = 32
  }

  /// Read and write for the owner and a named user, and read for the group.
  public static func access(named user: UInt32) -> [UInt8] {
    list((.owner, 6, nil), (.user, 6, user), (.owningGroup, 4, nil), (.mask, 6, nil), (.other, 0, nil))
  }

  /// An ACL of these entries, sorted by their tags and IDs: `rwx` as bits, and the ID of a named entry.
  public static func list(_ entries: (tag: Tag, permissions: UInt8, id: UInt32?)...) -> [UInt8] {
    [2, 0, 0, 0]
      + entries.flatMap { entry in
        [entry.tag.rawValue, 0, entry.permissions, 0]
          + (0..<4).map { UInt8(truncatingIfNeeded: (entry.id ?? .max) >> ($0 * 8)) }
      }
  }
}
