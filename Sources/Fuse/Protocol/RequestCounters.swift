import Posix

/// Kinds of request, named as the opcodes of <linux/fuse.h>.
public enum RequestKind: Int, CaseIterable, Sendable {
  case lookup, forget, getattr, setattr, readlink, open, read, write, statfs, opendir, readdir, readdirplus
  case getxattr, listxattr, lseek, ioctl, poll, change, flush, fsync
  case release

  /// The opcode's name in upper case.
  public var name: String { String(describing: self).uppercased() }
}

/// Counts requests by kind since the mount.
public final class RequestCounters: Sendable {
  /// How long they took.
  public let latencies = RequestLatencies()
  private let counters = RequestKind.allCases.map { _ in Counter() }

  init() {}

  /// Increments a counter.
  @inline(__always)
  func increment(_ kind: RequestKind) { counters[kind.rawValue].add(1) }

  /// The number of requests of a kind.
  public subscript(kind: RequestKind) -> UInt64 { counters[kind.rawValue].count }
}
