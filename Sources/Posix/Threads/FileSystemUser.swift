import CLinux
import CLibrary

/// The user and group as which a thread accesses files.
public enum FileSystemUser {
  /// Whether threads of this process may act as others: `CAP_SETUID`, `CAP_SETGID` and `CAP_SETPCAP`.
  public static var canBeChanged: Bool { linux_can_act_as_others() }

  /// Runs the body with another user and group for files that the calling thread creates. The thread keeps its
  /// capabilities.
  /// - Throws: EPERM unless `canBeChanged`.
  public static func act<Result: ~Copyable>(
    as user: UInt32, group: UInt32, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try remain(user, group: group)
    defer { actAsSelf() }
    return try body()
  }

  /// Makes the calling thread access files as another user until `actAsSelf`; it keeps its capabilities. Takes some
  /// microseconds, but none if it does already.
  /// - Throws: EPERM unless `canBeChanged`.
  public static func remain(_ user: UInt32, group: UInt32) throws(Errno) {
    _ = try checked { linux_act_as(user, group) }
  }

  /// Makes the calling thread access files as the process's user, if it does not.
  public static func actAsSelf() { linux_act_as_self() }

  /// A user and a group of which the kernel's file systems know nothing: (uid_t)-2. No space is reserved for them.
  public static let unknown: UInt32 = .max - 1

  /// As `act`, without `CAP_FSETID`, `CAP_SYS_RESOURCE` and the supplementary groups. The kernel copies these credentials
  /// for what it does later.
  /// - Throws: EPERM unless `canBeChanged`; ENOMEM; what the body throws.
  public static func actRestricted<Result: ~Copyable>(
    as user: UInt32, group: UInt32, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    var taken = linux_restriction()
    _ = try checked { linux_restrict(&taken) }
    defer { linux_unrestrict(&taken) }
    return try act(as: user, group: group, body)
  }

  /// Makes the calling thread, and those that it starts, keep to disk quotas and to the space that file systems reserve:
  /// gives up `CAP_SYS_RESOURCE`. Does nothing where that fails.
  public static func keepToLimits() { _ = linux_keep_to_limits() }
}
