import Glibc

/// The journal of systemd-journald(8).
enum Journal {
  private static let socketPath = "/run/systemd/journal/stdout"
  /// LOG_WARNING.
  private static let priority = 4

  /// A stream each of whose lines becomes an entry.
  /// - Parameter name: the identifier of the entries.
  /// - Returns: nil without a journal.
  static func stream(name: String) -> Descriptor? {
    let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard let socket = try? Descriptor(owning: checked { socket(AF_UNIX, type, 0) }) else { return nil }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: socketPath.utf8) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket.rawValue, $0, size) }
    }
    // The identifier, the unit, the priority, and whether to read priorities and to forward, a line each.
    let header = "\(name)\n\n\(priority)\n0\n0\n0\n0\n"
    guard result == 0, (try? socket.writeInOneCall(Array(header.utf8))) != nil else { return nil }
    return socket
  }
}
