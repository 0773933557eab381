import CLibrary
import Posix
import Routing

/// An open control file.
public struct ControlFileHandle: ~Copyable, Sendable {
  private let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  /// The sequence number of the newest result; 0 if there is none.
  /// - Throws: EACCES if the user may not read the file; ENOTCONN if the daemon is dead.
  func newestSequence() throws(Errno) -> UInt64 {
    try page(from: ResultsProtocol.Position(.max), size: ResultsProtocol.bufferSizes.small).newest
  }

  /// Results from a position on, in at most so many bytes.
  /// - Throws: as `newestSequence`.
  func page(from position: ResultsProtocol.Position, size: Int) throws(Errno) -> ResultsProtocol.Page {
    var buffer = ResultsProtocol.request(position, size: size)
    try descriptor.ioctl(ResultsProtocol.command(size: size), &buffer)
    guard let page = ResultsProtocol.page(in: buffer) else { throw Errno(rawValue: EPROTO) }
    return page
  }

  /// Writes a command as one line; returns when the daemon has carried it out.
  /// - Throws: the errno value with which the daemon rejects the command; ENOTCONN if the daemon is dead.
  public func write(_ command: [UInt8]) throws(Errno) {
    let line = command + [UInt8(ascii: "\n")]
    if try writeLines(line) != line.count { throw .invalidArgument }
  }

  /// Why ``wait(cancellation:)`` returned.
  enum Wakeup {
    case readable
    /// The daemon exits, or asks its clients to close the file before an unmount.
    case hangup
    case cancelled
  }

  /// Writes commands, each with its newline, in one call.
  ///
  /// The kernel may cut a write where it cannot read on, at the end of a page of the program's memory. These pages are
  /// laid on those of the file, at whose ends the daemon expects a cut.
  /// - Returns: the bytes of those that succeeded before the first that failed.
  /// - Throws: the errno value with which the daemon rejects the first; ENOTCONN if the daemon is dead.
  func writeLines(_ lines: [UInt8]) throws(Errno) -> Int {
    try descriptor.writeOnce(aligned: lines, at: 0)
  }

  /// Polls until there is a result that this thread has not read.
  func wait(cancellation: borrowing CancellationPipe) -> Wakeup {
    var polled = [
      pollfd(
        fd: descriptor.rawValue, events: Int16(POLLIN | POLLPRI) | ResultsProtocol.pollEvent, revents: 0),
      pollfd(fd: cancellation.readEnd, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let count = poll(&polled, 2, -1)
      if count < 0, errno == EINTR { continue }
      if count < 0 { return .hangup }
      if polled[1].revents != 0 { return .cancelled }
      return polled[0].revents & Int16(POLLERR | POLLHUP | POLLNVAL) == 0 ? .readable : .hangup
    }
  }
}
