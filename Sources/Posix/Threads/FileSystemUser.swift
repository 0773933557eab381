import CLinux
import Glibc

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
    _ = try checked { linux_act_as(user, group) }
    defer { linux_act_as_self() }
    return try body()
  }
}
