import ControlClient
import Posix
import Routing

/// Whether the file system at a path answers requests.
enum MountHealth {
  /// It answers, or is not a FUSE file system.
  case alive
  /// The connection to its daemon is closed (ENOTCONN).
  case dead
  /// It has not answered within the time limit.
  case unresponsive

  /// A little less than the two seconds within which commands answer.
  private static let timeoutMilliseconds: CInt = 1800

  /// Calls statfs(2), which the kernel never answers from its caches, unlike stat(2): they outlive the daemon. A child
  /// process does it, since a hung file system blocks its caller.
  init(of path: [UInt8]) {
    // Only FUSE file systems die; the others need no child process.
    guard let entry = MountTableEntry.top(at: path), entry.type.hasPrefix("fuse") else {
      self = .alive
      return
    }
    self.init { () throws(Errno) in _ = try Descriptor.open(path, [.pathOnly]).statvfs() }
  }

  /// Asks the daemon of a bundlefs, which replies without a layer, while statfs(2) may wait for one.
  init(ofDaemonAt path: [UInt8]) {
    self.init { () throws(Errno) in _ = try StatusClient.read(.controlName, at: path) }
  }

  private init(_ call: @escaping () throws(Errno) -> Void) {
    let reply = { () -> [UInt8] in
      do throws(Errno) { try call() } catch { return error == .socketNotConnected ? [1] : [0] }
      return [0]
    }
    switch try? ForkedCall.run(timeoutMilliseconds: Self.timeoutMilliseconds, reply) {
    case .returned([1]): self = .dead
    case .timedOut: self = .unresponsive
    default: self = .alive
    }
  }
}
