import Glibc
import Posix

/// A mount served by a background daemon: the mounting command returns.
public final class DaemonMount {
  /// The mount point.
  public let point: ByteString
  /// The result of the mounting command.
  public let outcome: Outcome
  private let watch: Int

  /// Runs the command; the caller checks its exit status.
  /// - Throws: if the command does not exit in time.
  public init(_ command: Command, point: ByteString, lifetime: Double = 90, timeout: Double = 30) throws {
    self.point = point
    watch = Watchdog.shared.add(point, process: nil, seconds: lifetime)
    outcome = try command.run(timeout: timeout)
  }

  /// Mounts without -f.
  public convenience init(_ setup: MountSetup) throws {
    try self.init(setup.command(foreground: false), point: setup.point, lifetime: setup.lifetime)
  }

  deinit {
    Watchdog.shared.remove(watch)
    if (try? MountTable.bundlefs(at: point)) != nil { MountTable.abandon(point) }
    for process in Self.processes(serving: point) { kill(process, SIGKILL) }
  }

  /// The processes whose command line includes the mount point.
  public static func processes(serving point: ByteString) -> [pid_t] {
    guard let names = try? ByteString("/proc").names() else { return [] }
    return names.compactMap { name in
      guard let process = pid_t(name.text), process != getpid(),
        let line = try? ("/proc" / name / "cmdline").read()
      else { return nil }
      let words = line.split(separator: 0).map { ByteString([UInt8]($0)) }
      return words.contains(point) ? process : nil
    }
  }

  /// The process ID of the worker.
  public func worker() throws -> pid_t { Mount.worker(of: try process()) }

  /// The process ID of the holder, or of the daemon with `survive=off`.
  /// - Throws: `TestFailure` unless there is exactly one.
  public func process() throws -> pid_t {
    let all = Self.processes(serving: point)
    let children = Set(all.map { Mount.worker(of: $0) })
    let processes = all.count == 1 ? all : all.filter { !children.contains($0) }
    guard let process = processes.first, processes.count == 1 else {
      throw TestFailure("\(processes.count) processes serve \(point)")
    }
    return process
  }

  /// Waits up to 20 seconds until the mount and its daemon are gone; longer while another mount namespace has the mount.
  public func isGone() throws -> Bool {
    if try eventually(within: 20, isGoneNow) { return true }
    // A namespace that was made meanwhile, by whatever runs beside the tests, has a copy of it.
    _ = try eventually(within: 60) { try isGoneNow() || !MountTable.isInAnyNamespace(point) }
    return try eventually(within: 10, isGoneNow)
  }

  private func isGoneNow() throws -> Bool {
    try MountTable.bundlefs(at: point) == nil && Self.processes(serving: point).isEmpty
  }
}
