import Glibc
import Posix

/// `bundlefs metrics MOUNTPOINT...|--all [--output FILE]`.
struct MetricsCommand {
  private let mounts: MountSelection
  /// nil for standard output.
  private let output: [UInt8]?

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var (operands, isForAll, output): ([[UInt8]], Bool, [UInt8]?) = ([], false, nil)
    var rest = arguments[...]
    while let word = rest.popFirst() {
      switch word.shown {
      case "--all", "-a": isForAll = true
      case "--output":
        guard let file = rest.popFirst(), !file.isEmpty else { throw .usage("'--output' needs a FILE") }
        output = file
      case let option where option.hasPrefix("-"): throw .unknownOption(option, of: "metrics")
      default: operands.append(word)
      }
    }
    mounts = try MountSelection(operands, isForAll: isForAll, command: "metrics")
    self.output = output
  }

  func run() throws(Failure) {
    let text = MountMetrics.text(of: mounts.ask().map(MountMetrics.init))
    guard let output else { return Terminal.printLines(text) }
    do throws(Errno) { try Self.write(text, to: output) } catch {
      throw .failed("\(output.shown): \(error)")
    }
  }

  private static func write(_ text: String, to path: [UInt8]) throws(Errno) {
    let file = try WholeFile(path)
    try file.append(text)
    try file.place()
  }
}
