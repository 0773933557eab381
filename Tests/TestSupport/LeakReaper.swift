import Glibc
import Posix

/// Removes processes, mounts and folders that tests leave behind: those still registered when the test process
/// exits, and those of a crashed earlier process, whose folder names contain its ID.
public final class LeakReaper: Sendable {
  private struct State {
    var processes: Set<pid_t> = []
    var folders: Set<ByteString> = []
  }

  /// This process's reaper.
  public static let shared = LeakReaper()
  /// The prefix of all test folders' names.
  static let prefix: ByteString = "bundlefs-tests."
  private let state = Locked(State())

  private init() {
    Self.sweep()
    atexit { LeakReaper.shared.clear() }
  }

  func register(process: pid_t) { state.withLock { _ = $0.processes.insert(process) } }
  func unregister(process: pid_t) { state.withLock { _ = $0.processes.remove(process) } }
  func register(folder: ByteString) { state.withLock { _ = $0.folders.insert(folder) } }
  func unregister(folder: ByteString) { state.withLock { _ = $0.folders.remove(folder) } }

  private func clear() {
    let left = state.withLock { state in
      let left = state
      state = State()
      return left
    }
    for folder in left.folders { MountTable.clear(below: folder) }
    for process in left.processes {
      kill(-process, SIGKILL)
      kill(process, SIGKILL)
    }
    for folder in left.folders { folder.removeTree() }
  }

  /// Removes the folders under /tmp of test processes that no longer exist.
  private static func sweep() {
    guard let names = try? ByteString("/tmp").names() else { return }
    for name in names where name.hasPrefix(prefix) {
      let digits = name.bytes.dropFirst(prefix.count).prefix { $0 != UInt8(ascii: ".") }
      guard let owner = pid_t(String(decoding: digits, as: UTF8.self)), kill(owner, 0) != 0, errno == ESRCH
      else { continue }
      MountTable.clear(below: "/tmp" / name)
      ("/tmp" / name).removeTree()
    }
  }
}
