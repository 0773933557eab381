import Posix

/// Whether the file system at a path answers requests.
enum MountHealth {
  /// It answers, or is not a FUSE file system.
  case alive
  /// The connection to its daemon is closed (ENOTCONN).
  case dead
  /// It has not answered within the time limit.
  case unresponsive

  private static let timeoutMilliseconds: CInt = 2000

  /// Calls statfs(2), which the kernel never answers from its caches, unlike stat(2): they outlive the daemon. A child
  /// process does it, since a hung file system blocks its caller.
  init(of path: [UInt8]) {
    // Only FUSE file systems die; the others need no child process.
    guard let entry = MountTableEntry.top(at: path), entry.type.hasPrefix("fuse") else {
      self = .alive
      return
    }
    let call = { Self.isDead(path) ? [1] : [0] as [UInt8] }
    switch try? ForkedCall.run(timeoutMilliseconds: Self.timeoutMilliseconds, call) {
    case .returned([1]): self = .dead
    case .timedOut: self = .unresponsive
    default: self = .alive
    }
  }

  private static func isDead(_ path: [UInt8]) -> Bool {
    do throws(Errno) {
      _ = try Descriptor.open(path, [.pathOnly]).statvfs()
      return false
    } catch {
      return error == .socketNotConnected
    }
  }
}
