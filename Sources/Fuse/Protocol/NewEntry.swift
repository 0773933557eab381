import Glibc
import Posix

/// The entry that MKNOD, MKDIR or SYMLINK makes. Valid during the call only.
public enum NewEntry {
  /// - mode: type and permission bits, before the umask where the file system applies it.
  case node(mode: UInt32, device: UInt64)
  /// - mode: permission bits.
  case directory(mode: UInt32)
  case symbolicLink(target: CName)

  /// Whether it is a regular file.
  public var isRegularFile: Bool {
    if case .node(let mode, _) = self { mode & S_IFMT == S_IFREG } else { false }
  }

  /// The request.
  public var kind: NewEntryKind {
    switch self {
    case .node: .node
    case .directory: .directory
    case .symbolicLink: .symbolicLink
    }
  }
}

/// The request that creates an entry: MKNOD, MKDIR or SYMLINK.
public enum NewEntryKind: Sendable {
  case node, directory, symbolicLink
}

/// The owner of what a caller creates.
public struct Credentials: Sendable {
  /// The file system user ID.
  public let user: UInt32
  /// The file system group ID.
  public let group: UInt32
  /// The umask, with which the kernel leaves modes as they are if `ConnectionSettings.appliesUmask` is set.
  public let umask: UInt32
  /// The calling thread; 0 for none, or one outside the daemon's PID namespace.
  public let thread: Int32

  /// The user and thread.
  public var caller: Caller { Caller(user: user, thread: thread) }
}
