import Glibc
import Posix
import Routing

/// An open control file.
public struct ControlFile: ~Copyable, Sendable {
  private let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  /// The results that the file holds, oldest first.
  /// - Throws: EBUSY if other processes write so often that no two reads agree; the errors of read(2).
  public func results() throws(Errno) -> [ResultLine] {
    guard let results = try ResultLines.read(by: { () throws(Errno) in try descriptor.readAll() }) else {
      throw .resourceBusy
    }
    return results
  }

  /// Writes a command as one line; returns when the daemon has carried it out.
  /// - Throws: the errno value with which the daemon rejects the command; ENOTCONN if the daemon is dead.
  public func write(_ command: [UInt8]) throws(Errno) {
    try descriptor.writeInOneCall(command + [UInt8(ascii: "\n")])
  }

  /// Why ``wait(cancellation:milliseconds:)`` returned.
  enum Wakeup {
    case readable
    /// The daemon exits, or asks its clients to close the file before an unmount.
    case hangup
    case cancelled
    case timedOut
  }

  /// Polls until there is a result that this open file has not been woken for.
  /// - Parameter milliseconds: for how long; -1 for any time.
  func wait(cancellation: borrowing CancellationPipe, milliseconds: CInt) -> Wakeup {
    var polled = [
      pollfd(fd: descriptor.rawValue, events: Int16(POLLIN | POLLPRI), revents: 0),
      pollfd(fd: cancellation.readEnd, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let count = poll(&polled, 2, milliseconds)
      if count == 0 { return .timedOut }
      if count < 0, errno == EINTR { continue }
      if count < 0 { return .hangup }
      if polled[1].revents != 0 { return .cancelled }
      return polled[0].revents & Int16(POLLERR | POLLHUP | POLLNVAL) == 0 ? .readable : .hangup
    }
  }
}
