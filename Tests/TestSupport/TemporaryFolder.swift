import Glibc
import Posix

/// A folder of its own under /tmp, removed with all that is in it when the last reference goes; what is
/// still mounted beneath it is unmounted first.
public final class TemporaryFolder: Sendable {
  /// Its path: short, plain ASCII, without symbolic links.
  public let path: ByteString
  private static let counter = Locked(0)

  /// Makes the folder.
  public init() throws {
    // The sweep that comes with the first use must not find this folder.
    let lastResort = LeakReaper.shared
    let number = Self.counter.withLock { counter in
      counter += 1
      return counter
    }
    path = "/tmp" / (LeakReaper.prefix + ByteString("\(getpid()).\(number)"))
    try path.makeDirectory()
    lastResort.remember(folder: path)
  }

  deinit { remove() }

  /// Removes it now.
  public func remove() {
    MountTable.clear(below: path)
    RemovedTree.remove(path)
    LeakReaper.shared.forget(folder: path)
  }

  /// Makes a folder in it.
  public func folder(_ name: ByteString) throws -> ByteString {
    try (path / name).makeDirectories()
    return path / name
  }

  /// The path of a name in it.
  public static func / (folder: TemporaryFolder, name: ByteString) -> ByteString { folder.path / name }
}

/// Removing a tree, whatever its names and modes are.
enum RemovedTree {
  static func remove(_ path: ByteString) {
    if (try? path.remove()) != nil { return }
    if (try? path.removeDirectory()) != nil { return }
    if access(path) == false { try? path.setMode(0o700) }
    for name in (try? path.list().map(\.name)) ?? [] { remove(path / name) }
    try? path.removeDirectory()
  }

  private static func access(_ path: ByteString) -> Bool {
    path.withPointer { Glibc.access($0, R_OK | W_OK | X_OK) == 0 }
  }
}
