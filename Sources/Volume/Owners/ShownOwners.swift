import Glibc
import Posix

/// The owners and permissions that a read-only mount shows instead of the layers' (`uid=`, `uidmapping=`, `umask=` and so on).
///
/// The kernel decides by what is shown. What this process checks itself, it checks by the same.
public struct ShownOwners: Sendable, Equatable {
  public var users = IDMapping.same
  public var groups = IDMapping.same
  /// The permission bits that are cleared, at most 0777.
  public var umask: UInt32 = 0

  /// The layers' own.
  public init() {}

  /// The attributes as they are shown.
  ///
  /// A set-user-ID program of another owner than in the layer would have rights that its owner in the layer could not
  /// give; so would a directory that gives its group away.
  public func shown(_ status: FileStatus) -> FileStatus {
    var shown = status
    let (user, group) = (users.shown(status.owner), groups.shown(status.group))
    (shown.owner, shown.group) = (user ?? IDMapping.overflow, group ?? IDMapping.overflow)
    shown.mode &= ~umask
    // The user 65534 exists, and must have no rights but those of all.
    if user == nil { shown.mode &= ~(0o700 & ~(shown.mode << 6)) }
    if group == nil { shown.mode &= ~(0o070 & ~(shown.mode << 3)) }
    let isSame = shown.owner == status.owner && shown.group == status.group
    if !isSame { shown.mode &= ~UInt32(S_ISUID | S_ISGID) }
    return shown
  }

  /// Whether an extended attribute would say what is not so here: a capability, which would come from another user, or what
  /// new entries inherit.
  func hides(_ attribute: String) -> Bool {
    let changesOwners = users != .same || groups != .same
    return attribute == ACLAttribute.default.description
      || changesOwners && attribute == "security.capability"
  }

  /// As `hides`, of a name as the kernel gives it.
  func hides(_ attribute: CName) -> Bool { hides(String(cString: attribute)) }

  /// An ACL with the IDs and permissions that are shown; the entries keep their order.
  /// - Parameter status: the attributes, in the layer, of the file or directory that has it.
  func shown(_ list: AccessControlList, of status: FileStatus) -> AccessControlList {
    let ownGroup: UInt32 = groups.shown(status.group) == nil ? 0 : 7
    let others = list.entries.first { $0.tag == .other }?.permissions ?? 0
    return AccessControlList(
      list.entries.map { entry in
        switch entry.tag {
        case .owner: entry.with(permissions: entry.permissions & ~(umask >> 6))
        case .user: shown(entry, users, others)
        case .group: shown(entry, groups, others)
        case .owningGroup:
          entry.with(permissions: entry.permissions & ~(umask >> 3) & (ownGroup | others & ~umask))
        case .mask: entry.with(permissions: entry.permissions & ~(umask >> 3))
        case .other: entry.with(permissions: entry.permissions & ~umask)
        }
      })
  }

  private func shown(
    _ entry: AccessControlList.Entry, _ mapping: IDMapping, _ others: UInt32
  ) -> AccessControlList.Entry {
    let permissions = entry.permissions & ~(umask >> 3)
    guard let id = mapping.shown(entry.id) else {
      return entry.with(permissions: permissions & others & ~umask, id: IDMapping.overflow)
    }
    return entry.with(permissions: permissions, id: id)
  }
}
