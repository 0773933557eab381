import CLibrary
import Posix

/// Contents whose archive was overwritten while they were decoded, and which wait for its reload. A thread,
/// which exists while there are any, fails them at their deadlines, so that no decoding thread is blocked.
final class ReloadWaiters: Sendable {
  private struct State {
    var contents: [ArchiveContent] = []
    var hasThread = false
    var isOver = false
  }
  private let state = Locked(State())
  /// Microseconds.
  private static let pause: UInt32 = 50_000

  func add(_ content: ArchiveContent) {
    let (isOver, needsThread) = state.withLock { state in
      if state.isOver { return (true, false) }
      state.contents.append(content)
      defer { state.hasThread = true }
      return (false, !state.hasThread)
    }
    if isOver { content.endReloadWait() }
    if !needsThread { return }
    do throws(Errno) { try Thread.startDetached(name: "reloadWaiters") { [self] in work() } } catch {
      endAll()
    }
  }

  /// Fails all waiters, and from now on each new one at once.
  func end() {
    state.withLock { $0.isOver = true }
    endAll(keepsThread: true)
  }

  private func endAll(keepsThread: Bool = false) {
    let contents = state.withLock { state in
      defer {
        state.contents = []
        if !keepsThread { state.hasThread = false }
      }
      return state.contents
    }
    for content in contents { content.endReloadWait() }
  }

  private func work() {
    while true {
      usleep(Self.pause)
      let contents = state.withLock { state -> [ArchiveContent] in
        defer { state.contents = [] }
        if state.contents.isEmpty { state.hasThread = false }
        return state.contents
      }
      if contents.isEmpty { return }
      let now = TimeSpec.monotonic
      let left = contents.filter { !$0.endReloadWait(by: now) }
      let isOver = state.withLock { state in
        if !state.isOver { state.contents += left }
        return state.isOver
      }
      if isOver { for content in left { content.endReloadWait() } }
    }
  }
}
