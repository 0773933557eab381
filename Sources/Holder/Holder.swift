import CLinux
import Glibc
import Posix

/// The process that keeps a mount while its workers come and go.
///
/// It forks a worker, waits until that has died, and forks the next one. The workers share its table of open files:
/// `/dev/fuse` and the files that programs read stay open. Apart from that it makes no call on a file, and it allocates
/// nothing, so that nothing but a signal can end it. A second thread, with no file open, reaps the dead.
public struct Holder {
  /// The signals that are passed on to the worker, where they are blocked at first.
  static let signals = SignalSet([SIGTERM, SIGINT, SIGHUP])
  /// How many workers may die in a row before they are ready.
  private static let attempts = 10
  /// The longest pause before a worker is forked, in microseconds.
  private static let longestPause: UInt32 = 1_000_000

  let state: UnsafeMutablePointer<HolderState>
  /// The arguments of the program that replaces this one; the first is its path.
  let replacement: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  private let isReplacement: Bool
  private let watchdog: Watchdog?

  /// - Parameters:
  ///   - memory: with the state at its beginning; zero, or what another program has left.
  ///   - replacement: the arguments of the program that replaces this one in an upgrade, its path first.
  ///   - isReplacement: whether this program has replaced another one.
  ///   - watchdog: after how long a worker that hangs is killed; nil for never.
  public init(
    _ memory: SharedMemory, replacement arguments: [[UInt8]], isReplacement: Bool, watchdog: Watchdog?
  ) {
    self.watchdog = watchdog
    state = memory.values(of: HolderState.self, at: 0)
    self.isReplacement = isReplacement
    replacement = .allocate(capacity: arguments.count + 1)
    for (index, argument) in arguments.enumerated() {
      replacement[index] = strndup(argument.map { CChar(bitPattern: $0) }, argument.count)
    }
    replacement[arguments.count] = nil
    if isReplacement { return }
    state.initialize(to: HolderState())
    linux_lock_initialize(lock)
  }

  /// Why no holder can fork workers here: the system call that is refused, with its error; nil if all are there.
  public static var obstacle: String? {
    guard let call = linux_obstacle_to_sharing_files() else { return nil }
    let error = Errno.current
    return "\(String(cString: call)): \(error)"
  }

  private var lock: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(state) + (MemoryLayout<HolderState>.offset(of: \.lock) ?? 0)
  }

  /// What the calling process has become.
  public enum Role {
    /// The first worker, which mounts.
    case first
    /// One that takes over from one that has died or handed over.
    case successor
    /// One that only unmounts, since no worker gets ready.
    case unmounter
  }

  /// Runs the body in each worker. The holder itself exits when the last worker has ended, with that one's status. The
  /// process must be single-threaded.
  /// - Throws: what fork(2) answers the first time; ENOSYS if open files cannot be shared.
  public func run(_ work: @escaping (Role) -> Never) throws(Errno) -> Never {
    SignalSet.ignoreStray()
    ThisProcess.reserveFiles()
    linux_forward_signals(&state.pointee.worker, &state.pointee.pendingSignal)
    startReaper()
    try forkWorker(isReplacement ? .successor : .first, work)
    // `dead` is the worker whose death is the last one that was recorded, perhaps before its process ended.
    var (failures, unreaped, dead) = (0, 0, pid_t(0))
    while true {
      unreaped += 1
      if unreaped > Self.mostUnreaped || !waitForDeath(milliseconds: Self.settling) {
        linux_reap_dead(dead)
        unreaped = 0
        linux_drop_code()
      }
      waitForDeathOrHang()
      let phase = state.pointee.phase
      let status = waitForEnd(attempts: Self.attempts(after: phase))
      if phase == .ended || state.pointee.initSize == 0 { exit(like: status) }
      if phase == .replaced {
        // Returns only if it fails; then this program continues, perhaps in another process.
        replaceProgram()
      } else if phase != .switched {
        state.pointee.recordDeath(status, at: TimeSpec.monotonic.seconds)
        dead = state.pointee.worker
      }
      failures = [.ready, .replaced, .switched].contains(phase) ? 0 : failures + 1
      if failures > 0 { usleep(min(1000 << UInt32(failures), Self.longestPause)) }
      // A dying thread of the former worker may still close a descriptor whose number is another file's by then.
      if linux_unshare_files() == 0 { ThisProcess.reserveFiles() }
      try? forkWorker(failures >= Self.attempts ? .unmounter : .successor, work)
    }
  }

  func startReaper() { linux_start_reaper(&state.pointee.worker, &state.pointee.lastStatus) }

  /// In a worker, which becomes no other program.
  private func freeReplacement() {
    var next = replacement
    while let argument = next.pointee {
      free(argument)
      next += 1
    }
    replacement.deallocate()
  }

  /// Forks a worker, and returns in the holder only.
  private func forkWorker(_ role: Role, _ work: @escaping (Role) -> Never) throws(Errno) {
    state.pointee.phase = .none
    state.pointee.worker = 0
    state.pointee.heartbeat = 0
    let holder = getpid()
    // They stay pending in the worker until it can unmount.
    Self.signals.block()
    let child = linux_fork_sharing_files()
    if child != 0 { Self.signals.unblock() }
    if child < 0 { throw .current }
    if child == 0 {
      linux_stop_forwarding_signals()
      freeReplacement()
      // Without a holder nothing would keep the mount from hanging after the worker's own death.
      linux_signal_at_end_of_parent(SIGTERM)
      if getppid() != holder { kill(getpid(), SIGTERM) }
      Thread.continueAfterFork { [self] in
        _ = linux_lock_acquire(lock, -1)
        state.pointee.phase = .started
        watchdog?.startHeartbeat(state)
        work(role)
      }
    }
    state.pointee.worker = child
    let signal = state.pointee.pendingSignal
    state.pointee.pendingSignal = 0
    if signal != 0 { kill(child, signal) }
    while state.pointee.phase == .none, !linux_has_ended(child, nil) { usleep(100) }
  }

  /// Reaping a worker and dropping code take processor time that its successor needs, so they wait until that has lived
  /// for some milliseconds, or until more workers are dead.
  private static let (settling, mostUnreaped): (CInt, Int) = (200, 8)

  /// Waits until the thread that serves in the worker has died. Its process may live on for as long as one of its threads
  /// waits for a request that it read itself and that only its successor can answer.
  /// - Returns: false after as many milliseconds, unless they are negative.
  private func waitForDeath(milliseconds: CInt) -> Bool {
    if linux_lock_acquire(lock, milliseconds) == linux_lock_failed { return false }
    linux_lock_release(lock)
    return true
  }

  /// Waits until the worker has died; kills it if it hangs.
  private func waitForDeathOrHang() {
    guard var watch = watchdog.map({ HeartbeatWatch($0, state) }) else {
      _ = waitForDeath(milliseconds: -1)
      return
    }
    while !waitForDeath(milliseconds: watch.period) {
      if watch.findsHang() { watch.kill() }
    }
  }

  /// How long the holder waits for the worker's process to end, in units of 0.1 ms.
  private static func attempts(after phase: HolderState.Phase) -> Int {
    switch phase {
    // Its status says nothing, and freeing its memory takes a millisecond or two, in which a program waits.
    case .switched: 0
    case .ended: 50_000
    default: 20
    }
  }

  /// How the worker ended; as if by SIGKILL if it has threads that cannot end yet.
  private func waitForEnd(attempts: Int) -> CInt {
    var status = CInt(SIGKILL)
    for _ in 0..<attempts {
      if linux_has_ended(state.pointee.worker, &status) { break }
      usleep(100)
    }
    return status
  }

  private func exit(like status: CInt) -> Never {
    // Some init processes leave the dead of others waiting for seconds.
    while waitpid(-1, nil, WNOHANG) > 0 {}
    let signal = status & 0x7F
    _exit(signal == 0 ? status >> 8 & 0xFF : 128 + signal)
  }
}
