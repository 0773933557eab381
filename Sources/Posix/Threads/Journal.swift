import Glibc

/// The journal of systemd-journald(8).
public enum Journal {
  static let socketPath = "/run/systemd/journal/stdout"
  /// LOG_WARNING.
  private static let priority = 4

  /// A stream each of whose lines becomes an entry.
  /// - Parameter name: the identifier of the entries.
  /// - Throws: ENOENT or ECONNREFUSED without a journal.
  public static func stream(name: String) throws(Errno) -> Descriptor {
    let socket = try Descriptor.connected(to: socketPath, SOCK_STREAM.rawValue)
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
    try Descriptor.connected(to: socketPath, SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue)
  }
}

extension Descriptor {
  /// Calls socket(2) for a local socket and connect(2).
  fileprivate static func connected(to path: String, _ type: UInt32) throws(Errno) -> Descriptor {
    let socket = Descriptor(
      owning: try checked { Glibc.socket(AF_UNIX, CInt(type | SOCK_CLOEXEC.rawValue), 0) })
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    _ = try checked {
      withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket.rawValue, $0, size) }
      }
    }
    return socket
  }
}
