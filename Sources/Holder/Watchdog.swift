import Glibc
import Posix
import Synchronization

/// How a holder finds out that its worker hangs: is stopped by a signal, say, or waits for memory. A thread of the worker
/// that does nothing else advances a counter in shared memory.
///
/// On a busy machine this thread, and the holder itself, run late. So the worker hangs only if the counter has stood still
/// during two periods in a row, each measured by the holder's own sleep, which continues where both were stopped.
public struct Watchdog: Sendable {
  fileprivate typealias Beats = UnsafeMutablePointer<Atomic<UInt64>>

  /// After how many milliseconds a worker that hangs is killed, at the earliest; half as many later at the latest.
  public let milliseconds: CInt

  public init(milliseconds: CInt) { self.milliseconds = milliseconds }

  fileprivate var period: CInt { max(1, milliseconds / 2) }
  /// Between two beats, in microseconds.
  private var interval: UInt32 { UInt32(max(1, milliseconds)) * 1000 / 8 }

  /// Starts the thread in a worker. Without one more thread nothing is watched.
  func startHeartbeat(_ state: UnsafeMutablePointer<HolderState>) {
    let beating = Heartbeat(count: Self.count(in: state), interval: interval)
    try? Thread.startDetached(name: "heartbeat") { beating.run() }
  }

  /// Beats are counted at their own address: the worker's other threads access the whole state meanwhile.
  fileprivate static func count(in state: UnsafeMutablePointer<HolderState>) -> Beats {
    let offset = MemoryLayout<HolderState>.offset(of: \.heartbeat) ?? 0
    return (UnsafeMutableRawPointer(state) + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
  }
}

/// The worker's side.
private struct Heartbeat: @unchecked Sendable {
  /// Stays mapped until the end of the process.
  let count: Watchdog.Beats
  let interval: UInt32

  func run() -> Never {
    while true {
      count.pointee.add(1, ordering: .relaxed)
      usleep(interval)
    }
  }
}

/// The holder's side, for one worker.
struct HeartbeatWatch {
  private let state: UnsafeMutablePointer<HolderState>
  /// In milliseconds.
  let period: CInt
  private var last: UInt64
  private var missed = 0
  private var wasKilled = false

  init(_ watchdog: Watchdog, _ state: UnsafeMutablePointer<HolderState>) {
    self.state = state
    period = watchdog.period
    last = Watchdog.count(in: state).pointee.load(ordering: .relaxed)
  }

  /// To be called after each period. Before the first beat a worker is only starting.
  mutating func findsHang() -> Bool {
    let beat = Watchdog.count(in: state).pointee.load(ordering: .relaxed)
    missed = beat == last && beat > 0 ? missed + 1 : 0
    last = beat
    return missed >= 2
  }

  /// Kills the worker, which the kernel may not be able to end at once.
  mutating func kill() {
    missed = 0
    if !wasKilled { state.pointee.hangs += 1 }
    wasKilled = true
    Glibc.kill(state.pointee.worker, SIGKILL)
  }
}
