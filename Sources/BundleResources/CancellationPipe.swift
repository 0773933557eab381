import Glibc
import Posix

/// A wait's other end: tells it to be over.
struct CancellationPipe: ~Copyable, Sendable {
  private let heard: Descriptor
  private let calling: Descriptor

  /// - Throws: EMFILE without room for two more descriptors.
  init() throws(Errno) {
    var ends: [CInt] = [-1, -1]
    let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    guard socketpair(AF_UNIX, CInt(type), 0, &ends) == 0 else { throw .current }
    heard = Descriptor(owning: ends[0])
    calling = Descriptor(owning: ends[1])
  }

  /// To be polled for POLLIN.
  var rawValue: CInt { heard.rawValue }

  /// Calls all waits off, those to come too.
  func call() {
    // One that is full has been written to.
    _ = Glibc.write(calling.rawValue, [0], 1)
  }

  /// Waits for the call, at most that long.
  /// - Returns: whether it came.
  func wait(milliseconds: CInt) -> Bool {
    var polled = pollfd(fd: rawValue, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, milliseconds) > 0
  }
}
