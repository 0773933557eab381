import Posix

/// The users that may change the entries of a directory.
public enum DirectoryWriters: Equatable, Sendable {
  case everyone
  case user(UInt32)
  case group(UInt32)
}

extension LayerDirectory {
  /// The users that may change the entries of this directory besides root, the group of root and one user; nil for no other. Its owner
  /// may, whatever the mode is, and can change that.
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
    guard let accessList, let list = AccessControlList(accessList) else {
      return status.group == 0 ? nil : .group(status.group)
    }
    for entry in list.entries where entry.permissions & 0o2 != 0 {
      switch entry.tag {
      case .user where !isTrusted(entry.id, user): return .user(entry.id)
      case .owningGroup where status.group != 0: return .group(status.group)
      case .group where entry.id != 0: return .group(entry.id)
      default: continue
      }
    }
    return nil
  }

  private static func isTrusted(_ owner: UInt32, _ user: UInt32) -> Bool { owner == 0 || owner == user }
}
