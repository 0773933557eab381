import Glibc
import Posix

/// What is to be mounted where.
public struct MountSetup: Sendable {
  /// MAIN.
  public var main: ByteString
  /// MOUNTPOINT.
  public var point: ByteString
  /// The substitution folders, the strongest first.
  public var substitutions: [ByteString]
  /// Further options, as they stand after -o.
  public var options: [ByteString] = []
  /// The user who mounts; nil: the one who runs the tests.
  public var user: UInt32?
  /// The program; nil: the one under test.
  public var binary: ByteString?
  /// Variables for the daemon.
  public var environment: [String: String] = [:]
  /// How many descriptors the daemon may have; nil: as many as this process.
  public var descriptorLimit: Int?
  /// The control group in which the daemon runs, a folder; nil: that of this process.
  public var controlGroup: ByteString?
  /// How long the mount may live before the watchdog ends it, in seconds.
  public var lifetime: Double = 120

  /// A mount of these folders.
  public init(main: ByteString, point: ByteString, substitutions: [ByteString] = []) {
    self.main = main
    self.point = point
    self.substitutions = substitutions
  }

  /// The command line; with the options in `BUNDLEFS_OPTIONS`, too, if there are some: so all tests can be tried with
  /// an option that is to make no difference.
  /// - Parameter foreground: with -f.
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

  /// A folder's name inside an option's value: what separates options and folders is escaped.
  public static func escaped(_ path: ByteString) -> ByteString {
    ByteString(
      path.bytes.flatMap { byte in ",:\\".utf8.contains(byte) ? [UInt8(ascii: "\\"), byte] : [byte] })
  }
}

/// A mount of bundlefs whose daemon runs in the foreground, as this process's child.
public final class Mount: Sendable {
  /// Where it is mounted.
  public let point: ByteString
  /// The daemon.
  public let process: Child
  private let binary: ByteString
  private let user: UInt32?
  private let watch: Int
  private let over = Locked(false)

  /// Mounts, and waits until the mount is there.
  public init(_ setup: MountSetup) throws {
    guard ByteString("/dev/fuse").exists else {
      throw TestFailure("this machine has no /dev/fuse: these tests mount; load the fuse module")
    }
    point = setup.point
    binary = try setup.binary ?? Binary.underTest()
    user = setup.user
    let child = try Child(setup.command(foreground: true))
    process = child
    watch = Watchdog.shared.guardMount(setup.point, process: child.pid, seconds: setup.lifetime)
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

  /// Unmounts by `bundlefs unmount` and waits for the daemon.
  /// - Throws: unless the command succeeds, the mount is gone and the daemon ends in time with status 0.
  public func unmount() throws {
    defer { abandon() }
    if let status = process.status() {
      throw TestFailure("the daemon ended by itself: exit \(status): \(process.errorText)")
    }
    let command = Command([binary, "unmount", point])
    let outcome = try (user.map { command.asUser($0) } ?? command).run(timeout: 20)
    if outcome.status != 0 {
      throw TestFailure("bundlefs unmount \(point): exit \(outcome.status): \(outcome.errorText)")
    }
    try waitForEnd()
  }

  /// Waits for the daemon to end by itself.
  /// - Throws: unless it does in time, with status 0.
  public func waitForEnd() throws {
    let outcome = try process.wait(timeout: 30)
    if outcome.status != 0 {
      throw TestFailure("the daemon's exit status is \(outcome.status): \(outcome.errorText)")
    }
  }

  /// Ends the mount and the daemon by force, if they are still there.
  public func abandon() {
    let isLate = over.withLock { over in
      defer { over = true }
      return over
    }
    if isLate { return }
    Watchdog.shared.release(watch)
    if process.status() == nil {
      MountTable.abandon(point)
      if !eventually(within: 5, { process.status() != nil }) { try? process.kill() }
    } else if (try? MountTable.bundlefs(at: point)) != nil {
      MountTable.abandon(point)
    }
  }
}

/// Mounts, runs the body and unmounts, also when the body throws.
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
