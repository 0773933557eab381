import Posix
import TestSupport

/// A memory control group, of version 1 or 2 as the machine has it.
final class MemoryCgroup {
  let path: ByteString
  private let counter: ByteString

  /// - Parameter limit: in bytes.
  init(limit: Int) throws {
    let root: ByteString = "/sys/fs/cgroup"
    let isUnified = (root / "cgroup.controllers").exists
    path = root / (isUnified ? "" : "memory") / ByteString("bundlefs-tests-\(Clock.now)")
    if isUnified { try (root / "cgroup.subtree_control").overwrite([UInt8]("+memory".utf8), at: 0) }
    try path.makeDirectory()
    let file: ByteString = isUnified ? "memory.max" : "memory.limit_in_bytes"
    counter = path / (isUnified ? "memory.events" : "memory.failcnt")
    try (path / file).overwrite([UInt8]("\(limit)".utf8), at: 0)
    if isUnified { try (path / "memory.swap.max").overwrite([UInt8]("0".utf8), at: 0) }
  }

  deinit {
    let path = self.path
    // Its last process may still be exiting.
    _ = eventually(within: 5) { (try? path.removeDirectory()) != nil }
  }

  /// The number of times the limit was reached.
  func timesReached() throws -> Int {
    let text = try counter.readText()
    let line = text.split(separator: "\n").first { $0.hasPrefix("max ") } ?? text[...]
    return line.split { !$0.isNumber }.first.flatMap { Int($0) } ?? 0
  }
}
