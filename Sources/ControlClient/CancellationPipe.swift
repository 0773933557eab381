import CLibrary
import Posix

/// A pipe that ends another thread's poll(2).
public struct CancellationPipe: ~Copyable, Sendable {
  private let reader: Descriptor
  private let writer: Descriptor

  /// Calls `socketpair(2)`, since Swift's Glibc module has no `pipe2(2)`.
  /// - Throws: EMFILE, ENFILE.
  public init() throws(Errno) {
    let ends = try Descriptor.socketPair(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
    reader = Descriptor(owning: ends.0)
    writer = Descriptor(owning: ends.1)
  }

  /// The descriptor to poll for POLLIN; it stays readable once cancelled.
  public var readEnd: CInt { reader.rawValue }

  /// Whether ``cancel()`` has been called.
  public var isCancelled: Bool { wait(milliseconds: 0) }

  /// Ends all waits, present and future.
  public func cancel() {
    // EAGAIN means that the pipe is full and therefore readable.
    _ = CLibrary.write(writer.rawValue, [0], 1)
  }

  /// Waits for the cancellation; returns false after the timeout.
  public func wait(milliseconds: CInt) -> Bool {
    var polled = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, milliseconds) > 0
  }
}
