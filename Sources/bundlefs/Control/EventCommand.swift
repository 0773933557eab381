import ControlClient
import Glibc
import Posix
import Routing

/// Runs a program for a result: `bundlefs listen --exec`. No shell sees what a URL contains.
struct EventCommand {
  private let words: [[UInt8]]

  init(_ words: [[UInt8]]) { self.words = words }

  /// Waits until the program exits, whatever its status.
  /// - Throws: if it cannot be started.
  func run(_ result: ResultLine) throws(Failure) {
    let name = words[0].shown
    let input = try Failure.naming(name) { () throws(Errno) in
      let input = try Descriptor.memory(name: "result")
      try input.writeInOneCall(result.bytes + [UInt8(ascii: "\n")])
      _ = lseek(input.rawValue, 0, SEEK_SET)
      return input
    }
    let (failure, leftOut) = run(result.environment, input)
    if let failure { throw .failed("\(name): \(failure)") }
    if leftOut.isEmpty { return }
    Terminal.printError(
      "result \(result.sequence): too long for the environment, so left out: \(leftOut.joined(separator: ", "))"
    )
  }

  /// Runs the program without the variables that exceed a limit of the kernel: 128 KiB for each, and a quarter of
  /// RLIMIT_STACK for all and the arguments. The longest one is left out until it can be started, since who posts a URL
  /// must not end the command of its reader.
  /// - Returns: why it cannot be started, and the names of the variables left out.
  private func run(
    _ all: [[UInt8]], _ input: borrowing Descriptor
  ) -> (failure: Errno?, leftOut: [String]) {
    var variables = all.sorted { $0.count < $1.count }
    var leftOut: [String] = []
    while true {
      let failure = ChildProcess.run(words, adding: variables, input: input)
      guard failure == Errno(rawValue: E2BIG), let longest = variables.popLast() else {
        return (failure, leftOut)
      }
      leftOut.append(Self.name(of: longest))
    }
  }

  private static func name(of variable: [UInt8]) -> String {
    Array(variable.prefix { $0 != UInt8(ascii: "=") }).shown
  }
}
