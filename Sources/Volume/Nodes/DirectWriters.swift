import Fuse
import Posix

/// Knows the files to which programs write past the daemon (FUSE passthrough).
protocol DirectWriters: AnyObject, Sendable {
  /// Whether a program has a file open for that.
  func mayWrite(to node: NodeID) -> Bool
}

extension NodeStore {
  /// Whether the content, the size and the times of a file may change without a request.
  func isWrittenDirectly(_ node: NodeID) -> Bool {
    directWriters.withLock { $0 }?.mayWrite(to: node) ?? false
  }
}
