import Glibc
import Posix

/// The exit status and output of a finished child process.
public struct Outcome: Sendable {
  /// The exit status, or 128 plus the signal that killed the process.
  public let status: Int
  /// Its standard output.
  public let output: [UInt8]
  /// Its standard error output.
  public let errors: [UInt8]

  /// The standard output as text.
  public var outputText: String { String(decoding: output, as: UTF8.self) }
  /// The standard error output as text.
  public var errorText: String { String(decoding: errors, as: UTF8.self) }
}

/// A program with its arguments, to be run as a child process.
public struct Command: Sendable {
  /// The program, found on PATH unless it contains a slash, and its arguments.
  public var arguments: [ByteString]
  /// Variables added to this process's environment.
  public var environment: [String: String] = [:]
  /// The working directory; nil for this process's own.
  public var directory: ByteString?

  /// Creates a command.
  public init(_ arguments: [ByteString], environment: [String: String] = [:], directory: ByteString? = nil) {
    self.arguments = arguments
    self.environment = environment
    self.directory = directory
  }

  /// Creates a command.
  public init(_ words: String..., in directory: ByteString? = nil) {
    arguments = words.map { ByteString($0) }
    self.directory = directory
  }

  /// A bash script with positional parameters (`$1`, `$2`, …).
  public static func shell(_ script: String, _ parameters: ByteString...) -> Command {
    Command(["/bin/bash", "-c", ByteString(script), "bash"] + parameters)
  }

  /// The same command run by another, unprivileged user.
  public func asUser(_ id: UInt32) -> Command {
    var command = self
    command.arguments =
      ["setpriv", "--reuid", ByteString("\(id)"), "--regid", ByteString("\(id)"), "--clear-groups"]
      + arguments
    return command
  }

  /// Runs the command to completion.
  /// - Throws: if it cannot be started, or after the timeout, having killed it.
  @discardableResult
  public func run(timeout: Double = 60) throws -> Outcome {
    let child = try Child(self)
    return try child.wait(timeout: timeout)
  }

  /// Runs the command to completion.
  /// - Throws: `TestFailure` if the exit status is not 0.
  @discardableResult
  public func check(timeout: Double = 60) throws -> Outcome {
    let outcome = try run(timeout: timeout)
    guard outcome.status == 0 else {
      throw TestFailure("\(words): exit \(outcome.status): \(outcome.errorText)")
    }
    return outcome
  }

  /// The command line, for messages.
  public var words: String { arguments.map(\.description).joined(separator: " ") }

  /// The argument list to spawn: env(1) sets the working directory, which `posix_spawn` cannot do portably.
  var spawned: [ByteString] {
    guard let directory else { return arguments }
    return ["/usr/bin/env", "-C", directory] + arguments
  }
}
