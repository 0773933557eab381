import CLibrary

/// A socket that only programs of this computer can connect to.
public struct LoopbackListener: ~Copyable {
  private let descriptor: Descriptor
  /// The port.
  public let port: UInt16

  /// Listens on 127.0.0.1.
  /// - Parameter port: 0 for a free one.
  /// - Throws: EADDRINUSE, EACCES.
  public init(port: UInt16) throws(Errno) {
    let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = Descriptor(owning: try checked { socket(AF_INET, type, 0) })
    // The port of a server that has just ended.
    var isOn: CInt = 1
    setsockopt(
      descriptor.rawValue, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout.size(ofValue: isOn)))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    try withUnsafeMutablePointer(to: &address) { pointer throws(Errno) in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer throws(Errno) in
        _ = try checked { bind(descriptor.rawValue, pointer, length) }
        _ = try checked { listen(descriptor.rawValue, 64) }
        _ = try checked { getsockname(descriptor.rawValue, pointer, &length) }
      }
    }
    self.descriptor = descriptor
    self.port = UInt16(bigEndian: address.sin_port)
  }

  /// Gives up ownership.
  /// - Returns: the socket, which the caller has to close.
  public consuming func release() -> CInt { descriptor.release() }
}
