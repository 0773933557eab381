import Posix
import TestSupport

/// The example program with its bundle, a substitution and a mount point.
final class GreeterFixture: Sendable {
  /// The bundle, in the example's sources.
  static let bundle = ByteString(#filePath).parent.parent / "Greeter/Greeter.app"

  let folder: TemporaryFolder
  let substitution: ByteString
  let point: ByteString
  private let program: ByteString

  init() throws {
    folder = try TemporaryFolder()
    substitution = try folder.folder("Overrides.app")
    point = try folder.folder("mount")
    program = try Binary.besideTheTests("greeter")
  }

  /// Creates or replaces a file of the substitution.
  func override(_ path: ByteString, _ content: String) throws {
    try (substitution / path).parent.makeDirectories()
    try (substitution / path).replace(content)
  }

  /// The program's command, in a locale without a language.
  func command(_ arguments: ByteString...) -> Command {
    Command([program] + arguments, environment: ["LC_ALL": "C.UTF-8"])
  }

  /// Runs the program over the bundle and the substitution.
  func run(_ options: ByteString...) throws -> Outcome {
    var command = command(Self.bundle, substitution)
    command.arguments += options
    return try command.run()
  }

  /// Starts the program on the mount and waits until it listens.
  func start(_ options: ByteString..., waiting line: String = "Waiting for greetings") throws -> Child {
    var command = command("--mount", point)
    command.arguments += options
    let greeter = try Child(command)
    try waitFor(line, of: greeter)
    return greeter
  }

  /// Waits for a line of the program's output.
  /// - Throws: `TestFailure` after 20 seconds, or if the program ends without it.
  func waitFor(_ line: String, of greeter: Child) throws {
    let isThere = { greeter.outputText.split(separator: "\n").contains(line[...]) }
    _ = eventually(within: 20) { isThere() || greeter.status() != nil }
    guard isThere() else {
      throw TestFailure("no line '\(line)' in: \(greeter.outputText); errors: \(greeter.errorText)")
    }
  }

  /// Mounts the bundle with the substitution, in English unless options say otherwise; unmounts after the body.
  func withGreeterMount(_ options: [ByteString] = ["languages=en"], _ body: (Mount) throws -> Void) throws {
    var setup = MountSetup(main: Self.bundle, point: point, substitutions: [substitution])
    setup.options = options
    try withMount(setup, body)
  }

  /// Writes a URL to the control file as a shell does.
  func echo(_ url: ByteString) throws {
    try Command.shell(#"echo "$1" > "$2/.routes""#, url, point).check()
  }
}
