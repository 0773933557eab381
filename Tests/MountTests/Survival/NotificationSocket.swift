import Glibc
import Posix
import TestSupport

/// A service manager's socket, which collects messages.
final class NotificationSocket: Sendable {
  /// What `NOTIFY_SOCKET` is to be.
  let address: ByteString
  private let socket: Descriptor
  private let received = Locked<[String]>([])

  /// - Parameter address: a path, or `@` and an abstract name.
  init(_ address: ByteString) throws {
    self.address = address
    var local = sockaddr_un()
    local.sun_family = sa_family_t(AF_UNIX)
    let isAbstract = address.bytes.first == UInt8(ascii: "@")
    let bytes = isAbstract ? [0] + address.bytes.dropFirst() : address.bytes
    withUnsafeMutableBytes(of: &local.sun_path) { $0.copyBytes(from: bytes) }
    let size = 2 + bytes.count + (isAbstract ? 0 : 1)
    let type = SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    socket = Descriptor(owning: Glibc.socket(AF_UNIX, CInt(type), 0))
    let result = withUnsafePointer(to: &local) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket.rawValue, $0, socklen_t(size))
      }
    }
    guard result == 0 else { throw TestFailure("bind \(address): \(Errno.current)") }
  }

  /// All messages so far.
  var messages: [String] {
    received.withLock { received in
      var buffer = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = recv(socket.rawValue, &buffer, buffer.count, 0)
        if count < 0 { return received }
        received.append(String(decoding: buffer.prefix(count), as: UTF8.self))
      }
    }
  }

  /// Whether a message with this line comes within 20 seconds.
  func hasMessage(with line: String) -> Bool {
    eventually(within: 20) { messages.contains { $0.split(separator: "\n").contains(line[...]) } }
  }
}
