import Glibc
import Posix
import TestSupport

/// `bundlefs run` on the filled fixture, by root or another user.
struct PrivateRun {
  /// The user that runs it.
  enum Caller: CaseIterable, Sendable {
    case root, user
  }

  let fixture: Fixture
  let program: ByteString
  let user: UInt32?

  private init(_ caller: Caller) throws {
    fixture = try Fixture()
    switch caller {
    case .root: (program, user) = (try Binary.underTest(), nil)
    case .user:
      let setup = try MountTests.UnprivilegedTests().userSetup(fixture)
      (program, user) = (try setup.binary ?? Binary.underTest(), setup.user)
    }
  }

  /// Calls the body, and checks that nothing is left afterwards.
  static func with(_ caller: Caller, _ body: (PrivateRun) throws -> Void) throws {
    let run = try PrivateRun(caller)
    try withOpenDevice {
      defer { run.kill() }
      try body(run)
      if try !run.isGone() { throw TestFailure("left: \(run.daemons), \(run.fixture.main)") }
    }
  }

  /// `bundlefs run -o substitution=… MAIN -- WORDS`.
  func words(_ command: [ByteString], substitution: ByteString? = nil) -> [ByteString] {
    let option = "substitution=" + MountSetup.escaped(substitution ?? fixture.substitution)
    return [program, "run", "-o", option, fixture.main, "--"] + command
  }

  func command(_ command: ByteString..., in directory: ByteString? = nil) -> Command {
    asCaller(Command(words(command), directory: directory))
  }

  /// A bash script in the mount, with `$1`: MAIN, `$2`: the program, and `$3`: a folder in which the caller may write.
  func shell(_ script: String) throws -> Command {
    let words: [ByteString] = ["bash", "-c", ByteString(script), "bash", fixture.main, program]
    return asCaller(Command(self.words(words + [try scratch()])))
  }

  /// A bash script outside of the mount, with `$@`: the words of `bundlefs run` for a command.
  func outside(_ script: String, _ command: ByteString...) -> Command {
    asCaller(Command(["bash", "-c", ByteString(script), "bash"] + words(command)))
  }

  func asCaller(_ command: Command) -> Command { user.map { command.asUser($0) } ?? command }

  func scratch() throws -> ByteString {
    let folder = try fixture.folder.folder("scratch")
    try folder.setMode(0o777)
    return folder
  }

  /// The processes that serve the mount.
  var daemons: [pid_t] {
    DaemonMount.processes(serving: fixture.main).filter {
      (try? ByteString("/proc/\($0)/comm").readText()) == "bundlefs\n"
    }
  }

  /// Whether the mount, its namespace and its daemon end within 20 seconds.
  func isGone() throws -> Bool {
    eventually(within: 20) { daemons.isEmpty && !MountTable.isInAnyNamespace(fixture.main) }
  }

  private func kill() { for process in daemons { Glibc.kill(process, SIGKILL) } }
}
