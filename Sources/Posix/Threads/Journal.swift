import CLibrary

/// The journal of systemd-journald(8).
public enum Journal {
  static let socketPath = "/run/systemd/journal/stdout"
  /// LOG_WARNING.
  private static let priority = 4

  /// A stream each of whose lines becomes an entry.
  /// - Parameter name: the identifier of the entries.
  /// - Throws: ENOENT or ECONNREFUSED without a journal.
  public static func stream(name: String) throws(Errno) -> Descriptor {
    let socket = try Descriptor.connected(to: Array(socketPath.utf8), SOCK_STREAM.rawValue)
    // The identifier, the unit, the priority, and whether to read priorities and to forward, a line each.
    let header = "\(name)\n\n\(priority)\n0\n0\n0\n0\n"
    try socket.writeInOneCall(Array(header.utf8))
    return socket
  }
}

/// The socket of syslog(3).
public enum SystemLog {
  static let socketPath = "/dev/log"

  /// A socket each of whose writes becomes an entry. One that finds the queue of the service full is lost: nothing waits for
  /// it.
  /// - Throws: ENOENT or ECONNREFUSED without a service; EPROTOTYPE for one that takes streams only.
  public static func datagrams() throws(Errno) -> Descriptor {
    try Descriptor.connected(to: Array(socketPath.utf8), SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue)
  }
}
