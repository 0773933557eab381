import Glibc
import Posix

/// What a finished child left.
public struct Outcome: Sendable {
  /// The exit status, or 128 and the signal that ended it.
  public let status: Int
  /// All that it wrote to its standard output.
  public let output: [UInt8]
  /// All that it wrote to its standard error.
  public let errors: [UInt8]

  /// The output as text.
  public var outputText: String { String(decoding: output, as: UTF8.self) }
  /// The error output as text.
  public var errorText: String { String(decoding: errors, as: UTF8.self) }
}

/// A program with its arguments, to be run as a child.
public struct Command: Sendable {
  /// The program, found on PATH unless it has a slash, and its arguments.
  public var arguments: [ByteString]
  /// Variables beside those of this process.
  public var environment: [String: String] = [:]
  /// Where it runs; nil: where this process does.
  public var directory: ByteString?

  /// The command of these words.
  public init(_ arguments: [ByteString], environment: [String: String] = [:], directory: ByteString? = nil) {
    self.arguments = arguments
    self.environment = environment
    self.directory = directory
  }

  /// The command of these words.
  public init(_ words: String..., in directory: ByteString? = nil) {
    arguments = words.map { ByteString($0) }
    self.directory = directory
  }

  /// A shell script with positional parameters (`$1`, `$2`, …).
  public static func shell(_ script: String, _ parameters: ByteString...) -> Command {
    Command(["/bin/bash", "-c", ByteString(script), "bash"] + parameters)
  }

  /// The same, run by another user, without privileges.
  public func asUser(_ id: UInt32) -> Command {
    var command = self
    command.arguments =
      ["setpriv", "--reuid", ByteString("\(id)"), "--regid", ByteString("\(id)"), "--clear-groups"]
      + arguments
    return command
  }

  /// Runs it to its end.
  /// - Throws: when it cannot be started, or has not ended in time: then it is killed.
  @discardableResult
  public func run(timeout: Double = 60) throws -> Outcome {
    let child = try Child(self)
    return try child.wait(timeout: timeout)
  }

  /// Runs it to its end and wants status 0.
  /// - Returns: what it wrote to its standard output.
  @discardableResult
  public func check(timeout: Double = 60) throws -> Outcome {
    let outcome = try run(timeout: timeout)
    guard outcome.status == 0 else {
      throw TestFailure("\(words): exit \(outcome.status): \(outcome.errorText)")
    }
    return outcome
  }

  /// The words, for messages.
  public var words: String { arguments.map(\.description).joined(separator: " ") }

  /// The argument list as it is spawned: env(1) sets the folder, which posix_spawn cannot portably.
  var spawned: [ByteString] {
    guard let directory else { return arguments }
    return ["/usr/bin/env", "-C", directory] + arguments
  }
}
