import Posix

/// The kinds of request, by the names that the kernel's headers have for them.
public enum RequestKind: Int, CaseIterable, Sendable {
  case lookup, forget, getattr, setattr, readlink, open, read, write, statfs, opendir, readdir, readdirplus
  case getxattr, listxattr, lseek, ioctl, poll, change, flush, fsync
  case release

  /// The name, in upper case.
  public var name: String { String(describing: self).uppercased() }
}

/// How many requests of each kind came since the mount began.
public final class RequestCounters: Sendable {
  private let counters = RequestKind.allCases.map { _ in Counter() }

  init() {}

  /// Counts a request.
  @inline(__always)
  func add(_ kind: RequestKind, _ count: UInt64 = 1) { counters[kind.rawValue].add(count) }

  /// The count of a kind.
  public subscript(kind: RequestKind) -> UInt64 { counters[kind.rawValue].count }
}
