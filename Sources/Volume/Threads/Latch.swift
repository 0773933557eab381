import Posix

/// Runs functions once something has happened; at once if it has.
final class Latch: Sendable {
  private struct State {
    var isOpen: Bool
    var waiting: [@Sendable () -> Void] = []
  }
  private let state: Locked<State>

  init(isOpen: Bool = false) { state = Locked(State(isOpen: isOpen)) }

  /// - Parameter body: called by this thread or by the one that opens the latch.
  func whenOpen(_ body: @escaping @Sendable () -> Void) {
    let isOpen = state.withLock { state in
      if !state.isOpen { state.waiting.append(body) }
      return state.isOpen
    }
    if isOpen { body() }
  }

  func open() {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      state.isOpen = true
      return state.waiting
    }
    for body in waiting { body() }
  }

  func close() { state.withLock { $0.isOpen = false } }
}
