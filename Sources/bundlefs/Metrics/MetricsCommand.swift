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
      case let option where option.hasPrefix("-"): throw .usage("'metrics' has no option '\(option)'")
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

  /// Replaces the file, so that a reader finds the former text or the new one.
  private static func write(_ text: String, to path: [UInt8]) throws(Errno) {
    let start = path.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    let directory = try Descriptor.open(
      start == 0 ? Array(".".utf8) : Array(path[..<start]), [.read, .directory])
    let name = Array(path[start...])
    // Collectors read only names with a suffix of theirs, such as .prom.
    try withCName(name + Array(".\(getpid())".utf8)) { temporary throws(Errno) in
      do throws(Errno) {
        let file = try directory.createFile(temporary, mode: 0o644)
        try Array(text.utf8).withBytes { bytes throws(Errno) in try file.write(bytes, at: 0) }
        try withCName(name) { name throws(Errno) in try directory.rename(temporary, to: name, in: directory) }
      } catch {
        try? directory.remove(temporary, isDirectory: false)
        throw error
      }
    }
  }
}
