import CLibrary

extension Descriptor {
  /// The most bytes of a local socket's address, with the NUL at the end of a path: `sun_path` of unix(7).
  static let longestSocketAddress = MemoryLayout.size(ofValue: sockaddr_un().sun_path)

  /// Calls socket(2) for a local socket and connect(2).
  /// - Parameters:
  ///   - address: a path, or NUL and an abstract name, as in unix(7).
  ///   - type: of socket(2), with its flags.
  /// - Throws: what the calls answer; ENAMETOOLONG for an address that no socket can have.
  static func connected(to address: [UInt8], _ type: UInt32) throws(Errno) -> Descriptor {
    guard address.count < longestSocketAddress else { throw .fileNameTooLong }
    let socket = Descriptor(
      owning: try checked { CLibrary.socket(AF_UNIX, CInt(type | SOCK_CLOEXEC.rawValue), 0) })
    var local = sockaddr_un()
    local.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &local.sun_path) { $0.copyBytes(from: address) }
    // An abstract name ends with the address, a path with its NUL.
    let count = address.first == 0 ? address.count : address.count + 1
    let size = (MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 0) + count
    _ = try checked {
      withUnsafePointer(to: &local) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(socket.rawValue, $0, socklen_t(size))
        }
      }
    }
    return socket
  }
}
