import Glibc
import Posix
import Routing

/// The control file of a mount, open for reading.
struct ControlFile: ~Copyable, Sendable {
  private let file: Descriptor
  /// The mount's number, which no other mount has while it lasts; nil where the mount table does not show it.
  let mount: Int?

  /// Opens it, whatever its name is.
  /// - Parameter mountPoint: an absolute path.
  /// - Throws: ENOTTY where no bundlefs is mounted; EACCES to those who may not read it; ENOTCONN where the
  ///   mount's daemon is dead; EPROTO where the mount names no file of its own.
  init(of mountPoint: [UInt8]) throws(Errno) {
    let root = try withCName(mountPoint) { path throws(Errno) in
      try Descriptor.open(path, [.read, .directory])
    }
    let answer = try root.ioctl(
      StatusProtocol.command(.controlName, page: 0), size: StatusProtocol.replySize)
    let name = Array(StatusProtocol.page(in: answer, after: 0).bytes)
    guard StatusProtocol.isControlName(name) else { throw Errno(rawValue: EPROTO) }
    file = try withCName(name) { name throws(Errno) in try root.openRegularFile(name, [.read]) }
    mount = Self.mount(at: mountPoint)
  }

  /// The number of the mount that is on top at a path now.
  static func mount(at mountPoint: [UInt8]) -> Int? { MountTableEntry.containing(mountPoint)?.id }

  /// The results that it has now, oldest first; nil while others write to it without a pause.
  func results() throws(Errno) -> [ResultLine]? {
    try ResultLines.read { () throws(Errno) in try file.readAll() }
  }

  /// What a wait ended with.
  enum News {
    /// There may be a new result.
    case result
    /// There will be none any more: the mount ends, or wants its listeners to go.
    case end
    /// The wait was called off.
    case cancellation
  }

  /// Waits for a result that was not there at the last wait.
  func wait(orFor cancellation: borrowing CancellationPipe) -> News {
    var polled = [
      pollfd(fd: file.rawValue, events: Int16(POLLIN | POLLPRI), revents: 0),
      pollfd(fd: cancellation.rawValue, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let count = poll(&polled, 2, -1)
      if count < 0, errno == EINTR { continue }
      if count < 0 { return .end }
      if polled[1].revents != 0 { return .cancellation }
      return polled[0].revents & Int16(POLLERR | POLLHUP | POLLNVAL) == 0 ? .result : .end
    }
  }
}
