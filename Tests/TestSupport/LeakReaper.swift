import Glibc
import Posix

/// What must not outlive the tests: processes, mounts and folders. Whatever is still known here when the
/// test process exits is taken away; what an earlier test process that crashed has left is found by the
/// names of its folders, which hold its process id.
public final class LeakReaper: Sendable {
  private struct State {
    var processes: Set<pid_t> = []
    var folders: Set<ByteString> = []
  }

  /// The one of this process.
  public static let shared = LeakReaper()
  /// How the names of all folders for tests begin.
  static let prefix: ByteString = "bundlefs-tests."
  private let state = Locked(State())

  private init() {
    Self.sweep()
    atexit { LeakReaper.shared.clear() }
  }

  func remember(process: pid_t) { state.withLock { _ = $0.processes.insert(process) } }
  func forget(process: pid_t) { state.withLock { _ = $0.processes.remove(process) } }
  func remember(folder: ByteString) { state.withLock { _ = $0.folders.insert(folder) } }
  func forget(folder: ByteString) { state.withLock { _ = $0.folders.remove(folder) } }

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
    for folder in left.folders { RemovedTree.remove(folder) }
  }

  /// Removes what test processes that are gone have left under /tmp.
  private static func sweep() {
    guard let names = try? ByteString("/tmp").names() else { return }
    for name in names where name.hasPrefix(prefix) {
      let digits = name.bytes.dropFirst(prefix.count).prefix { $0 != UInt8(ascii: ".") }
      guard let owner = pid_t(String(decoding: digits, as: UTF8.self)), kill(owner, 0) != 0, errno == ESRCH
      else { continue }
      MountTable.clear(below: "/tmp" / name)
      RemovedTree.remove("/tmp" / name)
    }
  }
}
