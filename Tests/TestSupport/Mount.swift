import Glibc
import Posix

/// The parameters of a mount.
public struct MountSetup: Sendable {
  /// MAIN.
  public var main: ByteString
  /// MOUNTPOINT.
  public var point: ByteString
  /// The substitution folders, topmost first.
  public var substitutions: [ByteString]
  /// Further options, as passed with `-o`.
  public var options: [ByteString] = []
  /// The ID of the mounting user; nil for the current one.
  public var user: UInt32?
  /// The program; nil for the one under test.
  public var binary: ByteString?
  /// Environment variables for the daemon.
  public var environment: [String: String] = [:]
  /// The daemon's `RLIMIT_NOFILE`; nil for this process's own.
  public var descriptorLimit: Int?
  /// The folder of the daemon's control group; nil for this process's own.
  public var controlGroup: ByteString?
  /// Seconds after which the watchdog ends the mount.
  public var lifetime: Double = 120

  /// Creates the parameters for these folders.
  public init(main: ByteString, point: ByteString, substitutions: [ByteString] = []) {
    self.main = main
    self.point = point
    self.substitutions = substitutions
  }

  /// The command line. It includes the options in `BUNDLEFS_OPTIONS`, so that all tests can run with an option
  /// that must make no difference.
  /// - Parameter foreground: whether to pass `-f`.
  public func command(foreground: Bool) throws -> Command {
    var words: [ByteString] = [try binary ?? Binary.underTest(), main, point]
    var list = options
    if let further = Binary.variable("BUNDLEFS_OPTIONS") { list.append(ByteString(further)) }
    if !substitutions.isEmpty {
      let folders = substitutions.map { Self.escaped($0) }
      list.insert(
        "substitution=" + ByteString([UInt8](folders.map(\.bytes).joined(separator: [0x3a]))), at: 0)
    }
    if !list.isEmpty {
      words += ["-o", ByteString([UInt8](list.map(\.bytes).joined(separator: [UInt8(ascii: ",")])))]
    }
    if foreground { words.append("-f") }
    if let limit = descriptorLimit { words = ["prlimit", ByteString("--nofile=\(limit):\(limit)")] + words }
    if let group = controlGroup {
      words = ["bash", "-c", #"echo $$ > "$0/cgroup.procs" && exec "$@""#, group] + words
    }
    let command = Command(words, environment: environment)
    return user.map { command.asUser($0) } ?? command
  }

  /// Escapes the separators of options and folders in a path.
  public static func escaped(_ path: ByteString) -> ByteString {
    ByteString(
      path.bytes.flatMap { byte in ",:\\".utf8.contains(byte) ? [UInt8(ascii: "\\"), byte] : [byte] })
  }
}

/// A mount whose daemon runs in the foreground as this process's child.
public final class Mount: Sendable {
  /// The mount point.
  public let point: ByteString
  /// The daemon's process.
  public let process: Child
  private let binary: ByteString
  private let user: UInt32?
  private let watch: Int
  private let isAbandoned = Locked(false)

  /// Mounts and waits up to 20 seconds for the mount to appear.
  public init(_ setup: MountSetup) throws {
    guard ByteString("/dev/fuse").exists else {
      throw TestFailure("/dev/fuse is missing; load the fuse module")
    }
    point = setup.point
    binary = try setup.binary ?? Binary.underTest()
    user = setup.user
    let child = try Child(setup.command(foreground: true))
    process = child
    watch = Watchdog.shared.add(setup.point, process: child.pid, seconds: setup.lifetime)
    let point = setup.point
    let isMounted = try eventually(within: 20) {
      try MountTable.bundlefs(at: point) != nil || child.status() != nil
    }
    if !isMounted || child.status() != nil {
      abandon()
      throw TestFailure("cannot mount at \(point): exit \(child.status() ?? -1): \(child.errorText)")
    }
  }

  deinit { abandon() }

  /// The process that answers requests: a child of the holder, or the daemon itself with `survive=off`.
  public var worker: pid_t { Self.worker(of: process.pid) }

  /// The living child of a holder; the process itself without one.
  public static func worker(of holder: pid_t) -> pid_t {
    var worker = holder
    // A holder has none while it starts the next one. It has one thread, the daemon with `survive=off` several.
    _ = eventually(within: 20) {
      if let child = livingChildren(of: holder).last { worker = child }
      return worker != holder || !isSingleThreaded(holder)
    }
    return worker
  }

  private static func isSingleThreaded(_ process: pid_t) -> Bool {
    isAlive(process) && (try? ByteString("/proc/\(process)/task").names().count) == 1
  }

  /// Whether a process has a program: a dead one has none any more.
  private static func isAlive(_ process: pid_t) -> Bool {
    (try? ByteString("/proc/\(process)/exe").linkTarget()) != nil
  }

  private static func livingChildren(of process: pid_t) -> [pid_t] {
    let list = (try? ByteString("/proc/\(process)/task/\(process)/children").readText()) ?? ""
    return list.split(separator: " ").compactMap { pid_t($0) }.filter(isAlive)
  }

  /// Sends a signal to the process that answers requests, and waits until SIGSTOP has stopped all its threads.
  public func signalWorker(_ signal: CInt) {
    let worker = worker
    kill(worker, signal)
    if signal == SIGSTOP { _ = eventually(within: 20) { Self.isStopped(worker) } }
  }

  private static func isStopped(_ process: pid_t) -> Bool {
    let threads = ByteString("/proc/\(process)/task")
    return ((try? threads.names()) ?? []).allSatisfy { thread in
      // The state stands behind the name in parentheses.
      (try? (threads / thread / "stat").readText())?.split(separator: ")").last?.hasPrefix(" T") ?? true
    }
  }

  /// Unmounts with `bundlefs unmount` and waits for the daemon.
  /// - Throws: `TestFailure` unless the command succeeds and the daemon exits in time with status 0.
  public func unmount() throws {
    defer { abandon() }
    if let status = process.status() {
      throw TestFailure("the daemon exited early: exit \(status): \(process.errorText)")
    }
    let command = Command([binary, "unmount", point])
    let outcome = try (user.map { command.asUser($0) } ?? command).run(timeout: 20)
    if outcome.status != 0 {
      throw TestFailure("bundlefs unmount \(point): exit \(outcome.status): \(outcome.errorText)")
    }
    try waitForEnd()
  }

  /// Waits for the daemon to exit.
  /// - Throws: `TestFailure` unless it does so in time with status 0.
  public func waitForEnd() throws {
    let point = self.point
    if !eventually(within: 10, { process.status() != nil }) {
      // A mount namespace that was made meanwhile, by whatever runs beside the tests, has a copy of the mount.
      _ = eventually(within: 60) { process.status() != nil || !MountTable.isInAnyNamespace(point) }
    }
    let outcome = try process.wait(timeout: 30)
    if outcome.status != 0 {
      throw TestFailure("the daemon's exit status is \(outcome.status): \(outcome.errorText)")
    }
  }

  /// Forcibly ends the mount and the daemon if they still exist.
  public func abandon() {
    let wasAbandoned = isAbandoned.withLock { isAbandoned in
      defer { isAbandoned = true }
      return isAbandoned
    }
    if wasAbandoned { return }
    Watchdog.shared.remove(watch)
    if process.status() == nil {
      MountTable.abandon(point)
      if !eventually(within: 5, { process.status() != nil }) { try? process.kill() }
    } else if (try? MountTable.bundlefs(at: point)) != nil {
      MountTable.abandon(point)
    }
  }
}

/// Mounts, runs the body and unmounts, even if the body throws.
@discardableResult
public func withMount<Result>(_ setup: MountSetup, _ body: (Mount) throws -> Result) throws -> Result {
  let mount = try Mount(setup)
  defer { mount.abandon() }
  let result: Result
  do {
    result = try body(mount)
  } catch {
    guard let status = mount.process.status() else { throw error }
    throw TestFailure("\(error); the daemon is dead: exit \(status): \(mount.process.errorText)")
  }
  try mount.unmount()
  return result
}
