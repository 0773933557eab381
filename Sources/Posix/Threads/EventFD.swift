import CLinux
import Glibc

/// An eventfd(2): a counter in the kernel that wakes the thread that polls it.
public struct EventFD: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// Makes a non-blocking one, closed on exec.
  /// - Throws: EMFILE, ENFILE, ENOMEM.
  public init() throws(Errno) {
    descriptor = Descriptor(owning: try checked { linux_eventfd() })
  }

  /// Wakes the waiting thread, or lets its next `wait` return at once.
  public func signal() {
    var one: UInt64 = 1
    _ = Glibc.write(descriptor.rawValue, &one, 8)
  }

  /// Waits until signalled, until another descriptor is readable, or until the time is over.
  /// - Parameters:
  ///   - urgent: a descriptor that is polled for POLLPRI.
  ///   - milliseconds: -1 waits without a limit.
  /// - Returns: whether `urgent` reported POLLPRI.
  @discardableResult
  public func wait(or other: CInt, urgent: CInt = -1, milliseconds: CInt) -> Bool {
    var polled = [
      pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0),
      pollfd(fd: other, events: Int16(POLLIN), revents: 0),
      pollfd(fd: urgent, events: Int16(POLLPRI), revents: 0),
    ]
    poll(&polled, 3, milliseconds)
    var count: UInt64 = 0
    if polled[0].revents != 0 { _ = Glibc.read(descriptor.rawValue, &count, 8) }
    return polled[2].revents != 0
  }
}
