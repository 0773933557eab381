import CLinux
import CLibrary

/// A mount namespace for this process and its children.
public enum PrivateNamespace {
  /// Where new mounts are made.
  public enum Users: Sendable {
    /// In the user namespace of before.
    case same
    /// In a new one that has only the caller's user and group, with their IDs.
    case own

    /// The user namespace; nil for that of before. It keeps no mount namespace alive.
    /// - Throws: errors of open(2).
    public func open() throws(Errno) -> Descriptor? {
      switch self {
      case .same: nil
      case .own: try Descriptor.open(Array("/proc/self/ns/user".utf8), [.read])
      }
    }
  }

  /// Calls unshare(2). Without `CAP_SYS_ADMIN` the mount namespace belongs to a new user namespace. Mounts made outside
  /// later appear inside, not the other way round. The process must be single-threaded.
  /// - Throws: EPERM or ENOSPC if user namespaces are not permitted.
  public static func enter() throws(Errno) -> Users {
    let users = try unshare()
    _ = try checked { linux_stop_propagation() }
    return users
  }

  private static func unshare() throws(Errno) -> Users {
    if linux_unshare_mounts(false) == 0 { return .same }
    if Errno.current != .notPermitted { throw .current }
    let (user, group) = (geteuid(), getegid())
    _ = try checked { linux_unshare_mounts(true) }
    // Required before an unprivileged process may map a group.
    try write("deny", to: "setgroups")
    try write("\(user) \(user) 1\n", to: "uid_map")
    try write("\(group) \(group) 1\n", to: "gid_map")
    return .own
  }

  private static func write(_ text: String, to file: String) throws(Errno) {
    try Descriptor.open(Array("/proc/self/\(file)".utf8), [.write]).writeInOneCall(Array(text.utf8))
  }
}
