import CLinux
import CLibrary

/// An eventfd(2), by which threads wake one waiting thread.
public struct EventFD: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// Calls eventfd(2) with `EFD_CLOEXEC | EFD_NONBLOCK`.
  /// - Throws: EMFILE, ENFILE, ENOMEM.
  public init() throws(Errno) {
    descriptor = Descriptor(owning: try checked { linux_eventfd() })
  }

  /// The descriptor to poll for `POLLIN`.
  public var rawValue: CInt { descriptor.rawValue }

  /// Ends the current wait, or else the next one.
  public func signal() {
    var one: UInt64 = 1
    _ = CLibrary.write(descriptor.rawValue, &one, 8)
  }

  /// Waits for `signal`, for another descriptor to become readable, for the timeout, or until a signal handler has run
  /// in the thread.
  /// - Parameters:
  ///   - other: a descriptor that is polled for `POLLIN`; -1 for none.
  ///   - urgent: a descriptor that is polled for `POLLPRI`; -1 for none.
  ///   - milliseconds: the timeout; -1 for none.
  /// - Returns: whether `urgent` reported `POLLPRI`.
  @discardableResult
  public func wait(or other: CInt, urgent: CInt = -1, milliseconds: CInt) -> Bool {
    var polled = [
      pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0),
      pollfd(fd: other, events: Int16(POLLIN), revents: 0),
      pollfd(fd: urgent, events: Int16(POLLPRI), revents: 0),
    ]
    poll(&polled, 3, milliseconds)
    var count: UInt64 = 0
    if polled[0].revents != 0 { _ = CLibrary.read(descriptor.rawValue, &count, 8) }
    return polled[2].revents != 0
  }
}
