import CLibrary

/// An ACL, as acl(5) describes it.
public struct AccessControlList: Sendable, Equatable {
  /// Whom an entry is for, as the kernel numbers it.
  public enum Tag: UInt16, Sendable {
    case owner = 0x01
    case user = 0x02
    case owningGroup = 0x04
    case group = 0x08
    case mask = 0x10
    case other = 0x20
  }

  /// What an ACL says of one user or group.
  public struct Entry: Sendable, Equatable {
    public let tag: Tag
    /// `rwx`, as three bits of a mode.
    public let permissions: UInt32
    /// The user or group ID of a named entry.
    public let id: UInt32

    /// The entry with other permissions, or for another user or group.
    public func with(permissions: UInt32, id: UInt32? = nil) -> Entry {
      Entry(tag: tag, permissions: permissions, id: id ?? self.id)
    }
  }

  public let entries: [Entry]

  /// - Parameter value: that of `system.posix_acl_access`: a header of 4 bytes, and 8 bytes for each entry: tag (2 bytes),
  ///   permissions (2), ID (4), little-endian.
  /// - Returns: nil if the value has no such form.
  public init?(_ value: [UInt8]) {
    guard value.count >= 4, value.count % 8 == 4 else { return nil }
    var entries: [Entry] = []
    for start in stride(from: 4, to: value.count, by: 8) {
      func number(_ bytes: Range<Int>) -> UInt32 {
        value[start + bytes.lowerBound..<start + bytes.upperBound].reversed().reduce(0) {
          $0 << 8 | UInt32($1)
        }
      }
      guard let tag = Tag(rawValue: UInt16(number(0..<2))) else { return nil }
      entries.append(Entry(tag: tag, permissions: number(2..<4) & 7, id: number(4..<8)))
    }
    self.entries = entries
  }

  /// An ACL of these entries.
  public init(_ entries: [Entry]) { self.entries = entries }

  /// The value of `system.posix_acl_access`, as `init` reads it.
  public var value: [UInt8] {
    var value: [UInt8] = []
    func append(_ number: UInt32, bytes: Int) {
      for byte in 0..<bytes { value.append(UInt8(truncatingIfNeeded: number >> (8 * byte))) }
    }
    // `POSIX_ACL_XATTR_VERSION`.
    append(2, bytes: 4)
    for entry in entries {
      append(UInt32(entry.tag.rawValue), bytes: 2)
      append(entry.permissions, bytes: 2)
      append(entry.id, bytes: 4)
    }
    return value
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
    func permissions(_ tag: Tag) -> UInt32? { entries.first { $0.tag == tag }?.permissions }
    func grants(_ permissions: UInt32) -> Bool { permissions & wanted == wanted }
    let mask = permissions(.mask) ?? 7
    if user == owner { return grants(permissions(.owner) ?? 0) }
    if let named = entries.first(where: { $0.tag == .user && $0.id == user }) {
      return grants(named.permissions & mask)
    }
    let groups = entries.filter {
      ($0.tag == .owningGroup && isMember(group)) || ($0.tag == .group && isMember($0.id))
    }
    if !groups.isEmpty { return groups.contains { grants($0.permissions & mask) } }
    return grants(permissions(.other) ?? 0)
  }
}

/// The names of the extended attributes that hold ACLs, as acl(5) has them.
public enum ACLAttribute {
  public static let access: StaticString = "system.posix_acl_access"
  /// That which new entries of a directory inherit.
  public static let `default`: StaticString = "system.posix_acl_default"

  /// Whether a name is that of the access ACL.
  public static func isAccess(_ name: CName) -> Bool { strcmp(name, access.cName) == 0 }
}

extension StaticString {
  /// The string as a C string, which it must be.
  public var cName: CName { UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self) }
}
