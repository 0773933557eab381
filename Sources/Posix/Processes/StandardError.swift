import CLibrary

/// Where the standard error of this process leads.
public enum StandardError: String, Sendable {
  case journal, syslog, file
  /// A terminal or a pipe.
  case stderr
  case none

  /// Replaces it. The descriptor stays open.
  public static func lead(to file: CInt) { dup2(file, STDERR_FILENO) }

  /// Asks the kernel.
  public static var present: StandardError {
    var status = stat()
    guard fstat(STDERR_FILENO, &status) == 0 else { return .none }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return .file
    case S_IFSOCK: return socket
    case S_IFCHR: return isNull(status) ? .none : .stderr
    default: return .stderr
    }
  }

  private static func isNull(_ status: stat) -> Bool {
    var null = stat()
    return fstatat(AT_FDCWD, "/dev/null", &null, 0) == 0 && null.st_rdev == status.st_rdev
  }

  /// syslog is the one that takes datagrams; its address is not the path by which it was found, which may be a symbolic link.
  private static var socket: StandardError {
    var type: CInt = 0
    var size = socklen_t(MemoryLayout<CInt>.size)
    guard getsockopt(STDERR_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) == 0 else { return .stderr }
    if type == CInt(SOCK_DGRAM.rawValue) { return .syslog }
    return peer == Journal.socketPath ? .journal : .stderr
  }

  private static var peer: String? {
    var address = sockaddr_un()
    var size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(STDERR_FILENO, $0, &size) }
    }
    guard result == 0, address.sun_family == sa_family_t(AF_UNIX) else { return nil }
    return withUnsafeBytes(of: &address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
