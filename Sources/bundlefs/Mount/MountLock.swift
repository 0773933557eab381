import Glibc
import Posix

/// Serializes commands that mount at the same path: each checks whether it is free before it mounts. Leaves no file
/// behind, since it locks the directory that contains the mount point (flock(2)).
final class MountLock: Sendable {
  /// A lock that another program holds must not prevent mounting for ever.
  private static let (attempts, interval): (Int, UInt32) = (500, 10_000)

  private let directory: Locked<Descriptor?>

  /// Waits up to 5 s for the lock; nil if the directory cannot be opened for reading. `Session.coversItsOwnKind`
  /// notices what the lock does not prevent.
  init?(for mountPoint: MountPoint) {
    var path = mountPoint.path
    while path.count > 1, path.last != UInt8(ascii: "/") { path.removeLast() }
    guard let directory = try? Descriptor.open(path, [.read, .directory]) else { return nil }
    for _ in 0..<Self.attempts {
      if flock(directory.rawValue, LOCK_EX | LOCK_NB) == 0 { break }
      usleep(Self.interval)
    }
    self.directory = Locked(directory)
  }

  /// Releases the lock.
  func release() { directory.withLock { $0 = nil } }
}
