import Fuse
import Glibc
import Posix

/// Finishes lines that a full buffer seemed to cut, once their program has closed the file and nothing can follow.
final class HeldLines: Sendable {
  private struct State {
    var isScheduled = false
    var isStopping = false
  }

  /// The first and the longest pause between two looks at the writers.
  private static let pauses: (first: UInt32, longest: UInt32) = (1000, 100_000)

  private let control: ControlFile
  private let worker = SerialWorker(name: "held-lines")
  private let state = Locked(order: 10, State())

  init(_ control: ControlFile) { self.control = control }

  /// - Throws: EAGAIN.
  func start(_ watchdog: LayerWatchdog) throws(Errno) { try worker.start(watchdog) }

  func stop() {
    state.withLock { $0.isStopping = true }
    worker.stop()
  }

  /// Polls the writers of held lines until no line is held.
  func watch(_ finish: @escaping @Sendable (WriteReassembler.PartialLine) -> Void) {
    let begins = state.withLock { state in
      defer { state.isScheduled = true }
      return !state.isScheduled
    }
    if begins { _ = worker.add { [self] in poll(finish) } }
  }

  private func poll(_ finish: (WriteReassembler.PartialLine) -> Void) {
    var pause = Self.pauses.first
    while !isDone {
      usleep(pause)
      pause = min(pause * 2, Self.pauses.longest)
      for writer in control.reassembler.withLock({ $0.buffering })
      where !writer.hasOpenFile(named: control.name) {
        guard let line = control.reassembler.withLock({ $0.takeBuffer(of: writer) }) else { continue }
        finish(line)
        pause = Self.pauses.first
      }
    }
  }

  private var isDone: Bool {
    state.withLock { state in
      if !state.isStopping, control.reassembler.withLock({ $0.holdsBuffers }) { return false }
      state.isScheduled = false
      return true
    }
  }
}
