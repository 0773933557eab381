import CLibrary

/// The service manager that started this process: systemd, or another one that speaks the protocol of sd_notify(3).
public struct ServiceManager: Sendable {
  /// What `NOTIFY_SOCKET` names: a path, or with `@` at its beginning an abstract name.
  private let address: [UInt8]
  /// Between two signs of life, in microseconds; nil if none are expected.
  public let watchdogInterval: UInt32?

  /// Reads `NOTIFY_SOCKET` and `WATCHDOG_USEC` of the environment.
  /// - Returns: nil if nothing waits for messages.
  public init?() {
    self.init { getenv($0).map { [UInt8](bytesOf: $0) } }
  }

  /// - Parameter variable: the value of an environment variable.
  public init?(_ variable: (String) -> [UInt8]?) {
    guard let address = variable("NOTIFY_SOCKET"), address.count > 1,
      [UInt8(ascii: "/"), UInt8(ascii: "@")].contains(address[0])
    else { return nil }
    self.address = address
    // Twice as often as they are expected, as sd_watchdog_enabled(3) advises.
    let limit = variable("WATCHDOG_USEC").flatMap { UInt64(String(decoding: $0, as: UTF8.self)) }
    watchdogInterval = limit.flatMap { $0 > 1 ? UInt32(clamping: $0 / 2) : nil }
  }

  /// Sends assignments such as `READY=1`, in one message. A line feed in a value would begin another assignment, so a
  /// value ends there.
  /// - Throws: what connect(2) and send(2) answer; EAGAIN if the service manager does not read for a second.
  public func notify(_ assignments: [(name: String, value: String)]) throws(Errno) {
    let text = assignments.map { "\($0.name)=\($0.value.prefix { !$0.isNewline })\n" }.joined()
    let socket = try Descriptor.connected(
      to: address.first == UInt8(ascii: "@") ? [0] + address.dropFirst() : address,
      SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue)
    do throws(Errno) { try socket.writeInOneCall(Array(text.utf8)) } catch {
      guard error == .resourceTemporarilyUnavailable else { throw error }
      var polled = pollfd(fd: socket.rawValue, events: Int16(POLLOUT), revents: 0)
      poll(&polled, 1, 1000)
      try socket.writeInOneCall(Array(text.utf8))
    }
  }
}
