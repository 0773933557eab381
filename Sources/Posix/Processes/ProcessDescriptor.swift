import CLinux
import CLibrary

/// A process (pidfd_open(2)), whose ID may be another one's once it has ended.
public struct ProcessDescriptor: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// A file descriptor that poll(2) finds readable once the process has ended.
  public var rawValue: CInt { descriptor.rawValue }

  /// - Throws: ESRCH if there is no such process; ENOSYS before Linux 5.3.
  public init(_ process: pid_t) throws(Errno) {
    descriptor = Descriptor(owning: try checked { linux_open_process(process) })
  }

  /// Waits until the process has ended.
  /// - Returns: false after the timeout.
  public borrowing func waitForEnd(milliseconds: CInt) -> Bool {
    let deadline = TimeSpec.monotonic.advanced(byMilliseconds: milliseconds)
    while true {
      var polled = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
      let ready = poll(&polled, 1, max(0, deadline.milliseconds(since: .monotonic)))
      if ready > 0 { return true }
      if ready == 0 { return false }
    }
  }
}

extension ThisProcess {
  /// The number of the namespace in which this process has its ID; 0 if it is unknown.
  public static var idNamespace: UInt64 {
    (try? Descriptor.open("/proc/self/ns/pid", [.pathOnly]).attributes().identity.inode) ?? 0
  }
}
