import CLinux
import CLibrary

/// The other end of a TCP connection within this computer.
public enum LoopbackPeer {
  /// The user ID of the process that has connected, as this user namespace numbers users.
  /// - Parameters:
  ///   - address: of the other end.
  ///   - port: of this end, which is on 127.0.0.1.
  /// - Throws: ENOTCONN if the connection is being closed; ENOENT; EPROTONOSUPPORT without sock_diag(7).
  public static func user(at address: sockaddr_in, connectedTo port: UInt16) throws(Errno) -> UInt32 {
    var user: UInt32 = 0
    let here = UInt32(0x7F00_0001).bigEndian
    _ = try checked {
      linux_tcp_owner(address.sin_addr.s_addr, address.sin_port, here, port.bigEndian, &user)
    }
    return user
  }
}
