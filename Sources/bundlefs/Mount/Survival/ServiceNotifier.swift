import Glibc
import Posix
import Routing

/// Tells the service manager that started a mount about its state, as a unit with `Type=notify` expects it.
///
/// The messages come from workers, and the main process is their holder: the unit needs `NotifyAccess=all`.
struct ServiceNotifier: Sendable {
  private let manager: ServiceManager
  private let mount: String
  /// Whether this process is a worker of a holder.
  private let isHeld: Bool

  /// - Returns: nil if no service manager waits for messages, or for those of another program: that of `bundlefs run`.
  init?(_ plan: MountPlan, isHeld: Bool) {
    guard !plan.isPrivate, let manager = ServiceManager() else { return nil }
    self.manager = manager
    self.isHeld = isHeld
    mount = plan.mountPoint.path.shown.escapingControls
  }

  /// - Parameter deaths: how many workers have died.
  func isReady(deaths: Int) {
    let status = "Serving \(mount)" + (deaths > 0 ? "; worker processes that have died: \(deaths)" : "")
    send([("READY", "1"), ("MAINPID", "\(isHeld ? getppid() : getpid())"), ("STATUS", status)])
  }

  /// Another program is to take over, which will be ready.
  func isReloading() {
    let now = TimeSpec.monotonic
    send([
      ("RELOADING", "1"), ("MONOTONIC_USEC", "\(now.seconds * 1_000_000 + Int64(now.nanoseconds / 1000))"),
      ("STATUS", "Changing to the installed program"),
    ])
  }

  func isStopping() { send([("STOPPING", "1"), ("STATUS", "Unmounted \(mount)")]) }

  /// Starts a thread that gives signs of life, if they are expected. It shows that this process runs, not that each
  /// layer answers.
  func beginSignsOfLife() {
    guard let interval = manager.watchdogInterval else { return }
    try? Thread.startDetached(name: "service watchdog") {
      while true {
        try? manager.notify([("WATCHDOG", "1")])
        usleep(interval)
      }
    }
  }

  private func send(_ assignments: [(name: String, value: String)]) {
    do throws(Errno) { try manager.notify(assignments) } catch {
      Terminal.printError("the service manager (NOTIFY_SOCKET) cannot be reached: \(error)")
    }
  }
}
