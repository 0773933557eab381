import Glibc
import Posix

/// A child process. Its output goes to unlinked files rather than pipes, so that nothing has to drain them and
/// a daemon that it leaves behind does not block the test.
public final class Child: Sendable {
  /// The process ID, which is also its process group ID.
  public let pid: pid_t
  private let command: String
  private let outputFile: CInt
  private let errorFile: CInt
  private let exitStatus = Locked<Int?>(order: 10, nil)

  /// Spawns the command.
  public init(_ command: Command) throws {
    self.command = command.words
    outputFile = try Self.captureFile()
    errorFile = try Self.captureFile()
    pid = try Self.spawn(command, output: outputFile, errors: errorFile)
    LeakReaper.shared.register(process: pid)
  }

  deinit {
    if status() == nil { try? kill() }
    LeakReaper.shared.unregister(process: pid)
    close(outputFile)
    close(errorFile)
  }

  /// The exit status, or 128 plus the signal that killed the process; nil while it runs.
  public func status() -> Int? {
    exitStatus.withLock { exitStatus in
      if let exitStatus { return exitStatus }
      var raw: CInt = 0
      guard waitpid(pid, &raw, WNOHANG) == pid else { return nil }
      exitStatus = raw & 0x7f == 0 ? Int(raw >> 8) & 0xff : 128 + Int(raw & 0x7f)
      LeakReaper.shared.unregister(process: pid)
      return exitStatus
    }
  }

  /// Waits for the process to exit.
  /// - Throws: `TestFailure` after the timeout, having killed the process.
  public func wait(timeout: Double) throws -> Outcome {
    guard eventually(within: timeout, { status() != nil }), let status = status() else {
      try kill()
      throw TestFailure("\(command): still running after \(timeout) s, killed; stderr: \(errorText)")
    }
    return Outcome(status: status, output: Self.content(outputFile), errors: Self.content(errorFile))
  }

  /// Sends a signal to the process, not to its group, if it still runs.
  public func signal(_ number: CInt) {
    if status() == nil { Glibc.kill(pid, number) }
  }

  /// Kills the process group, and waits for its end.
  /// - Throws: `TestFailure` if the process survives for 10 seconds.
  public func kill() throws {
    if status() != nil { return }
    Glibc.kill(-pid, SIGKILL)
    Glibc.kill(pid, SIGKILL)
    if !eventually(within: 10, { status() != nil }) {
      throw TestFailure("\(command): process \(pid) survives SIGKILL")
    }
    // Its children may still be in a mount. Dead ones that init has not reaped yet count, too.
    _ = eventually(within: 5) { Glibc.kill(-pid, 0) != 0 }
  }

  /// Its standard error output so far.
  public var errorText: String { String(decoding: Self.content(errorFile), as: UTF8.self) }
  /// Its standard output so far.
  public var outputText: String { String(decoding: Self.content(outputFile), as: UTF8.self) }

  private static func captureFile() throws -> CInt {
    var template = [CChar]("/tmp/bundlefs-tests-output.XXXXXX".utf8CString)
    let file = mkstemp(&template)
    if file < 0 { throw DiskError("mkstemp", "/tmp", .current) }
    unlink(template)
    _ = fcntl(file, F_SETFD, FD_CLOEXEC)
    return file
  }

  /// Reads with `pread(2)`: the child writes at the file offset that both share.
  private static func content(_ file: CInt) -> [UInt8] {
    guard let size = try? ByteString.status(of: file).size else { return [] }
    var content = [UInt8](repeating: 0, count: Int(size))
    let count = content.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, 0) }
    return [UInt8](content.prefix(max(0, count)))
  }

  private static func spawn(_ command: Command, output: CInt, errors: CInt) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawn_file_actions_adddup2(&actions, errors, 2)

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // A process group of its own, so that a kill reaches a shell's children; no signal blocked or ignored.
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    posix_spawnattr_setpgroup(&attributes, 0)
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigdefault(&attributes, &all)

    let arguments = command.spawned
    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { duplicate($0) } + [nil]
    var variables: [UnsafeMutablePointer<CChar>?] = environment(command).map { strdup($0) } + [nil]
    defer { (words + variables).forEach { free($0) } }
    var pid: pid_t = 0
    let result = posix_spawnp(&pid, words[0].unsafelyUnwrapped, &actions, &attributes, &words, &variables)
    guard result == 0 else { throw DiskError("spawn", arguments[0], Errno(rawValue: result)) }
    return pid
  }

  private static func duplicate(_ text: ByteString) -> UnsafeMutablePointer<CChar>? {
    text.withPointer { strdup($0) }
  }

  private static func environment(_ command: Command) -> [String] {
    var lines: [String] = []
    var entry = environ
    while let line = entry.pointee {
      let text = String(cString: line)
      let name = text.prefix { $0 != "=" }
      if command.environment[String(name)] == nil { lines.append(text) }
      entry += 1
    }
    return lines + command.environment.map { "\($0.key)=\($0.value)" }
  }
}
