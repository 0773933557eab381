import CLinux
import Glibc
import Posix

/// The change to another program. The holder executes it and so keeps its process ID. Before, it forks a *guard*: a copy
/// of itself with the same open files, which becomes the holder, with this program, if the other one fails.
extension Holder {
  /// How long the other program has until its first worker reads requests, in milliseconds.
  private static let takeoverTimeout: CInt = 5000
  /// How often the guard looks whether it does.
  private static let pollInterval: CInt = 5
  /// How long the guard waits for the end of what it has killed, in milliseconds.
  private static let killTimeout: CInt = 2000

  /// Executes the candidate. Returns where this program continues: in the guard if the candidate has died or has not taken
  /// over in time; in the holder if it cannot be executed.
  func replaceProgram() {
    let candidate = state.pointee.candidate - 1
    state.pointee.candidate = 0
    // A dying thread of the former worker may still close a descriptor whose number is another file's by then.
    linux_unshare_files()
    let holder = linux_open_process(getpid())
    state.pointee.worker = 0
    let upgrades = state.pointee.upgrades
    state.pointee.takeover = .pending
    // They stay pending until there is a worker that can unmount, in whichever program.
    Self.signals.block()
    switch linux_fork_detached() {
    case 0:
      if isTakenOver(from: holder, former: upgrades) { _exit(0) }
      end(holder)
      // The new program has closed them on exec for itself only.
      state.pointee.keepsFiles = 1
      startReaper()
    case 1:
      linux_execute(candidate, replacement)
      state.pointee.takeover = .abandoned
    default: state.pointee.takeover = .none
    }
    state.pointee.failedUpgrades += 1
    if candidate >= 0 { close(candidate) }
    if holder >= 0 { close(holder) }
    Self.signals.unblock()
  }

  /// In the guard: waits until the new program's worker reads requests, or its holder has died, or the time is up. Then
  /// the files that this process has are the former worker's still: a new one records none before it reads requests.
  /// - Parameter former: how many upgrades there had been before.
  /// - Returns: false if this program is to go on.
  private func isTakenOver(from holder: CInt, former: UInt32) -> Bool {
    let deadline = TimeSpec.monotonic.advanced(byMilliseconds: Self.takeoverTimeout)
    var isAlive = true
    // The next upgrade may be pending before this process has run.
    while state.pointee.takeover == .pending, state.pointee.upgrades == former {
      let rest = deadline.milliseconds(since: .monotonic)
      if !isAlive || rest == 0 { return false }
      isAlive = !Self.hasEnded(holder, within: min(rest, Self.pollInterval))
    }
    return true
  }

  /// In the guard: kills the new program's processes. A worker of a dead holder unmounts by itself, so the worker comes
  /// first; that of a living holder is its child, whose ID is no other process's.
  private func end(_ holder: CInt) {
    let worker = state.pointee.worker
    if worker > 0, !Self.hasEnded(holder, within: 0) { kill(worker, SIGKILL) }
    linux_kill_process(holder)
    _ = Self.hasEnded(holder, within: Self.killTimeout)
    state.pointee.takeover = .none
  }

  private static func hasEnded(_ process: CInt, within milliseconds: CInt) -> Bool {
    var polled = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, milliseconds) > 0
  }
}
