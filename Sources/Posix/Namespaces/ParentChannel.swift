import CLinux
import CLibrary

/// What the background process of a private mount needs to serve it.
public struct ReceivedMount: ~Copyable {
  /// The descriptor of `/dev/fuse`.
  public let device: Descriptor
  /// The user namespace in which it is mounted; nil for that of the background process.
  public let users: Descriptor?

  public init(device: consuming Descriptor, users: consuming Descriptor?) {
    self.device = device
    self.users = users
  }

  fileprivate var rawUsers: CInt {
    switch users {
    case .none: -1
    case .some(let namespace): namespace.rawValue
    }
  }

  /// Gives up the ownership.
  /// - Returns: -1 for no user namespace.
  public consuming func release() -> (device: CInt, users: CInt) {
    (device.release(), users?.release() ?? -1)
  }
}

/// The parent's end of the socket to a detached background process, which reports by it and gets the mount's descriptor.
public struct ParentChannel: ~Copyable {
  private let socket: Descriptor

  /// What the background process reports.
  public enum Report {
    /// Only the mount is missing.
    case prepared
    /// The mount is usable.
    case ready
    /// It has failed, with a message for the user.
    case failed(String)
    /// It ended without a report.
    case ended
  }

  private static let (ready, prepared) = ([UInt8(0)], [UInt8(1)])
  /// In bytes; the rest of a longer message is cut off.
  private static let longest = 16 << 10

  init(socket: consuming Descriptor) { self.socket = socket }

  /// Waits for the next report.
  public func next() -> Report {
    var bytes = [UInt8](repeating: 0, count: Self.longest)
    var file = CInt(-1)
    let count = linux_receive_packet(socket.rawValue, &bytes, bytes.count, &file)
    if file >= 0 { close(file) }
    if count <= 0 { return .ended }
    switch Array(bytes[..<count]) {
    case Self.ready: return .ready
    case Self.prepared: return .prepared
    case let message: return .failed(String(decoding: message, as: UTF8.self))
    }
  }

  /// Passes the mount on.
  /// - Throws: EPIPE or ECONNRESET if the background process has ended.
  public func send(_ mount: borrowing ReceivedMount) throws(Errno) {
    for file in [mount.device.rawValue, mount.rawUsers] {
      _ = try checked { linux_send_packet(socket.rawValue, Self.prepared, 1, file) }
    }
  }

  /// In the background process: reports `prepared`, and waits for what `send` sends.
  static func receiveMount(on socket: CInt) throws(Errno) -> ReceivedMount {
    _ = try checked { linux_send_packet(socket, prepared, 1, -1) }
    guard let device = try receiveFile(on: socket) else { throw Errno(rawValue: ECONNRESET) }
    return ReceivedMount(device: device, users: try receiveFile(on: socket))
  }

  /// - Returns: nil for a packet without a descriptor.
  private static func receiveFile(on socket: CInt) throws(Errno) -> Descriptor? {
    var (byte, file) = (UInt8(0), CInt(-1))
    let count = try checked { linux_receive_packet(socket, &byte, 1, &file) }
    if count <= 0 { throw Errno(rawValue: ECONNRESET) }
    return file < 0 ? nil : Descriptor(owning: file)
  }
}

extension BackgroundProcess {
  /// Forks twice. The grandchild, which is no child of this process any more and has a session of its own, returns from
  /// this function; its working directory and open files are still those of this process. The process must be
  /// single-threaded.
  /// - Parameter parent: what this process does from then on.
  /// - Throws: EAGAIN, ENOMEM, EMFILE.
  public static func startDetached(
    _ parent: (consuming ParentChannel) -> Never
  ) throws(Errno) -> BackgroundProcess {
    let ends = try Descriptor.socketPair(SOCK_SEQPACKET.rawValue)
    let ours = Descriptor(owning: ends.0)
    let theirs = Descriptor(owning: ends.1)
    let child = try checked { linux_fork() }
    if child == 0 {
      setsid()
      let grandchild = linux_fork()
      if grandchild != 0 { _exit(grandchild < 0 ? errno : 0) }
      return BackgroundProcess(report: theirs)
    }
    let failure = exitStatus(of: child)
    if failure != 0 { throw Errno(rawValue: failure) }
    _ = consume theirs
    parent(ParentChannel(socket: ours))
  }

  private static func exitStatus(of child: pid_t) -> CInt {
    let status = wait(for: child)
    return status & 0x7F == 0 ? status >> 8 & 0xFF : EIO
  }
}
