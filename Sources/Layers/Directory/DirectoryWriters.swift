import Posix

/// Who may change the entries of a directory.
public enum DirectoryWriters: Equatable, Sendable {
  case everyone
  case user(UInt32)
  case group(UInt32)
}

extension LayerDirectory {
  /// Who may change the entries of this directory besides root, the group of root and a user; nil for nobody else. Its owner
  /// may, whatever the mode is, since he can change that.
  /// - Returns: nil in an archive.
  public func writers(besides user: UInt32) throws(Errno) -> DirectoryWriters? {
    guard case .descriptor(let handle) = backing else { return nil }
    return try gate.call { () throws(Errno) in try DirectoryWriters.of(handle.descriptor, besides: user) }
  }
}

extension DirectoryWriters {
  /// As `LayerDirectory.writers`; makes no call on a gate.
  static func of(_ directory: borrowing Descriptor, besides user: UInt32) throws(Errno) -> DirectoryWriters? {
    let list = try directory.extendedAttribute(ACLAttribute.access.cName)
    return of(try directory.attributes(), accessList: list, besides: user)
  }

  /// - Parameter accessList: the value of the xattr; nil without an ACL.
  static func of(_ status: FileStatus, accessList: [UInt8]?, besides user: UInt32) -> DirectoryWriters? {
    if status.mode & 0o002 != 0 { return .everyone }
    if !isTrusted(status.owner, user) { return .user(status.owner) }
    // With an ACL, this is its mask.
    if status.mode & 0o020 == 0 { return nil }
    guard let accessList, let entries = AccessListEntry.all(in: accessList) else {
      return status.group == 0 ? nil : .group(status.group)
    }
    for entry in entries where entry.permissions & 0o2 != 0 {
      switch entry.tag {
      case .namedUser where !isTrusted(entry.id, user): return .user(entry.id)
      case .group where status.group != 0: return .group(status.group)
      case .namedGroup where entry.id != 0: return .group(entry.id)
      default: continue
      }
    }
    return nil
  }

  private static func isTrusted(_ owner: UInt32, _ user: UInt32) -> Bool { owner == 0 || owner == user }
}

/// An entry of an ACL; see acl(5).
struct AccessListEntry {
  /// As the kernel numbers them.
  enum Tag: UInt16 {
    case user = 0x01
    case namedUser = 0x02
    case group = 0x04
    case namedGroup = 0x08
    case mask = 0x10
    case other = 0x20
  }

  let tag: Tag
  /// `rwx`, as three bits of a mode.
  let permissions: UInt16
  /// The user or group ID of a named entry.
  let id: UInt32

  /// The entries in the value of an xattr: a header of 4 bytes, and 8 bytes for each entry, little-endian.
  /// - Returns: nil if it is malformed.
  static func all(in value: [UInt8]) -> [AccessListEntry]? {
    guard value.count >= 4, value.count % 8 == 4 else { return nil }
    var entries: [AccessListEntry] = []
    for start in stride(from: 4, to: value.count, by: 8) {
      guard let tag = Tag(rawValue: UInt16(number(value[start..<start + 2]))) else { return nil }
      entries.append(
        AccessListEntry(
          tag: tag, permissions: UInt16(number(value[start + 2..<start + 4])),
          id: number(value[start + 4..<start + 8])))
    }
    return entries
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }
}
