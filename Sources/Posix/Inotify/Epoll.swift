import CLinux

/// An instance of epoll(7), which tells in one system call whether any of its files has an event.
public struct Epoll: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// Calls epoll_create1(2).
  /// - Throws: EMFILE, ENFILE, ENOMEM.
  public init() throws(Errno) { descriptor = Descriptor(owning: try checked { linux_epoll() }) }

  /// Adds a file.
  /// - Parameters:
  ///   - isUrgent: whether to report `EPOLLPRI` instead of `EPOLLIN`.
  ///   - bits: what stands for the file.
  /// - Throws: ENOSPC beyond `fs.epoll.max_user_watches`.
  public func add(_ file: CInt, isUrgent: Bool = false, bits: UInt64) throws(Errno) {
    _ = try checked { linux_epoll_add(descriptor.rawValue, file, isUrgent, bits) }
  }

  /// Calls epoll_wait(2) without waiting.
  /// - Returns: the bits of up to two files that have events; all bits if the call fails.
  public func poll() -> UInt64 { linux_epoll_poll(descriptor.rawValue) }
}
