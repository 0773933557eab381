import Posix
import TestSupport
import Testing

/// Routes named by the type of their only parameter.
let numberAndTextRoutes = "route Number i:A\nroute Text s:A\n"

/// Mounts the filled fixture and writes these lines to the control file.
func withMount(routes lines: String, _ body: (Mount) throws -> Void) throws {
  let fixture = try Fixture()
  try withMount(fixture.setup) { mount in
    try mount.writeControl(lines)
    try body(mount)
  }
}

extension Mount {
  /// Reads and parses the control file.
  func routesText() throws -> RoutesText { try RoutesText(try controlFile.read()) }

  /// The last result.
  func lastResult() throws -> RoutedResult {
    guard let last = try routesText().results.last else { throw TestFailure("there is no result") }
    return last
  }

  /// Runs a bash script in which `$R` is the control file, `$M` the mount point and `$B` the command.
  func bash(_ script: String, user: UInt32? = nil) throws -> Outcome {
    let command = Command.shell("R=$1 M=$2 B=$3\n" + script, controlFile, point, try Binary.underTest())
    var localized = user.map { command.asUser($0) } ?? command
    localized.environment["LC_ALL"] = "C"
    return try localized.run(timeout: 30)
  }

  /// Runs a Python script with the control file's path in `path`, and expects these output lines.
  func expectPython(
    _ script: String, prints lines: String..., location: SourceLocation = #_sourceLocation
  ) throws {
    let outcome = try Command("python3", "-c", "import sys; path = sys.argv[1]\n" + script, controlFile.text)
      .run(timeout: 30)
    #expect(outcome.errorText == "", sourceLocation: location)
    #expect(outcome.outputText.split(separator: "\n").map(String.init) == lines, sourceLocation: location)
  }

  /// Starts `bundlefs listen` and waits until it is ready.
  func listen(_ arguments: ByteString...) throws -> Child {
    let listener = try Child(Command([try Binary.underTest(), "listen", point] + arguments))
    let process = ByteString("/proc/\(listener.pid)")
    // It blocks in poll(2) after printing the existing results; before, it polls without having the file open.
    let isWaiting = try eventually(within: 20) {
      if listener.status() != nil { return true }
      guard try (process / "wchan").readText().contains("poll") else { return false }
      let files = try Command.shell("readlink /proc/$1/fd/*", ByteString("\(listener.pid)")).run(timeout: 10)
      return files.outputText.split(separator: "\n").contains { $0.hasPrefix((point / "").text) }
    }
    guard isWaiting, listener.status() == nil else {
      throw TestFailure("bundlefs listen is not ready: \(listener.errorText)")
    }
    return listener
  }
}

extension Child {
  /// Waits for a number of lines on standard output.
  func lines(_ count: Int, within seconds: Double = 20) throws -> [String] {
    _ = eventually(within: seconds) { self.outputText.split(separator: "\n").count >= count }
    let lines = outputText.split(separator: "\n").map(String.init)
    guard lines.count >= count else {
      throw TestFailure("\(lines.count) lines, not \(count): \(outputText.suffix(300)); \(errorText)")
    }
    return lines
  }
}
