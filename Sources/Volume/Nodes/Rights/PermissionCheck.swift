import Fuse
import Glibc
import Posix

/// What a caller wants to do with an entry, in the bits of a permission triple.
struct Access: OptionSet, Sendable {
  let rawValue: UInt32
  static let read = Access(rawValue: 4)
  static let write = Access(rawValue: 2)
  static let search = Access(rawValue: 1)
}

/// The present owner, group, permission bits and ACL of an entry, and what they allow, as path_resolution(7) has it.
///
/// The kernel checks permissions before it sends a request (`default_permissions`), by attributes that it has cached. This
/// check is for where they may be those of another entry by now.
struct PermissionCheck {
  let attributes: FileStatus
  let acl: AccessControlList?

  func allows(_ access: Access, to caller: Caller) -> Bool {
    if caller.user == 0 || grants(access, to: caller) { return true }
    return caller.hasCapability(.overrideDAC)
  }

  private func grants(_ access: Access, to caller: Caller) -> Bool {
    if let acl {
      return acl.allows(
        access.rawValue, user: caller.user, owner: attributes.owner, group: attributes.group,
        isMember: caller.isMember)
    }
    let mode = attributes.mode
    func triple(_ shift: UInt32) -> Bool { mode >> shift & access.rawValue == access.rawValue }
    if caller.user == attributes.owner { return triple(6) }
    // Whose group it is makes no difference then.
    if triple(3) == triple(0) { return triple(0) }
    return caller.isMember(of: attributes.group) ? triple(3) : triple(0)
  }

  /// Whether the caller may change the permission bits, the times and the ACL.
  func isOwned(by caller: Caller) -> Bool {
    caller.user == 0 || caller.user == attributes.owner || caller.hasCapability(.actAsOwner)
  }

  /// Whether the caller may make these changes, as chmod(2), chown(2) and utimensat(2) have it. The size is not among them:
  /// a program can set it by a descriptor that it was given.
  func allows(_ changes: AttributeChanges, to caller: Caller) -> Bool {
    if caller.user == 0 { return true }
    if changes.owner != nil || changes.group != nil {
      guard mayChown(changes, caller) else { return false }
    }
    if changes.permissions != nil || changes.setsGivenTimes {
      guard isOwned(by: caller) else { return false }
    }
    if changes.size == nil, changes.setsPresentTime {
      return isOwned(by: caller) || allows(.write, to: caller)
    }
    return true
  }

  private func mayChown(_ changes: AttributeChanges, _ caller: Caller) -> Bool {
    if caller.hasCapability(.changeOwner) { return true }
    guard caller.user == attributes.owner, changes.owner ?? attributes.owner == attributes.owner else {
      return false
    }
    return changes.group.map { $0 == attributes.group || caller.isMember(of: $0) } ?? true
  }
}

extension AttributeChanges {
  fileprivate var setsGivenTimes: Bool {
    for case .at? in [accessed, modified] { return true }
    return false
  }

  fileprivate var setsPresentTime: Bool { accessed == .now || modified == .now }
}

/// The capabilities of capabilities(7) that matter for files.
enum FileCapability: UInt64 {
  case changeOwner = 0
  case overrideDAC = 1
  case actAsOwner = 3
  case keepSetID = 4
  case changeProtection = 9
}

extension Caller {
  /// Whether the calling thread has a capability in this process's user namespace; false if it cannot be examined.
  func hasCapability(_ capability: FileCapability) -> Bool {
    guard thread != 0, let status = try? contents("status"),
      let field = Self.field("CapEff", in: status),
      let bits = UInt64(String(decoding: field, as: UTF8.self), radix: 16)
    else { return false }
    return bits >> capability.rawValue & 1 != 0 && isInOwnUserNamespace
  }

  private var isInOwnUserNamespace: Bool {
    func identity(_ path: String) -> FileIdentity? {
      try? Descriptor.open(Array(path.utf8), [.pathOnly]).attributes().identity
    }
    guard let own = identity("/proc/self/ns/user") else { return false }
    return identity("/proc/\(thread)/ns/user") == own
  }
}
