import Glibc
import Posix

/// A unique folder under /tmp. When the last reference is released, mounts below it are unmounted and the folder
/// is removed with its contents.
public final class TemporaryFolder: Sendable {
  /// The path: short, plain ASCII, without symbolic links.
  public let path: ByteString
  private static let counter = Locked(0)

  /// Makes the folder.
  public init() throws {
    // The first use sweeps /tmp, which must not find this folder.
    let reaper = LeakReaper.shared
    let number = Self.counter.withLock { counter in
      counter += 1
      return counter
    }
    path = "/tmp" / (LeakReaper.prefix + ByteString("\(getpid()).\(number)"))
    try path.makeDirectory()
    reaper.register(folder: path)
  }

  deinit { remove() }

  /// Unmounts and removes now.
  public func remove() {
    MountTable.clear(below: path)
    path.removeTree()
    LeakReaper.shared.unregister(folder: path)
  }

  /// Makes a folder inside.
  public func folder(_ name: ByteString) throws -> ByteString {
    try (path / name).makeDirectories()
    return path / name
  }

  /// The path of a name inside.
  public static func / (folder: TemporaryFolder, name: ByteString) -> ByteString { folder.path / name }
}

extension ByteString {
  /// Removes a file or a directory with its contents, ignoring errors and restrictive modes.
  public func removeTree() {
    if (try? remove()) != nil { return }
    if (try? removeDirectory()) != nil { return }
    if !isAccessible { try? setMode(0o700) }
    for name in (try? list().map(\.name)) ?? [] { (self / name).removeTree() }
    try? removeDirectory()
  }

  private var isAccessible: Bool { withPointer { Glibc.access($0, R_OK | W_OK | X_OK) == 0 } }
}
