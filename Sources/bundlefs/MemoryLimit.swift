import Glibc
import Posix

/// How much memory the process may take.
enum MemoryLimit {
  /// What a cache may take of it: a quarter, and no more than so many bytes.
  static func share(atMost bytes: Int) -> Int { min(bytes, (lowest(in: files()) ?? Int.max) / 4) }

  /// The files that hold the limits of the process's control groups and of those above them: memory.max of version
  /// 2, memory.limit_in_bytes of version 1. Where a group's own folder is out of sight, as in containers, what
  /// is seen at the top is the container's.
  private static func files() -> [String] {
    let groups = (try? Descriptor.open("/proc/self/cgroup", [.read]).readAll()) ?? []
    return groups.split(separator: UInt8(ascii: "\n")).flatMap { files(ofGroup: Array($0)) }
  }

  /// - Parameter line: `NUMBER:CONTROLLERS:/PATH`, as /proc/self/cgroup has it; without controllers in version 2.
  static func files(ofGroup line: [UInt8]) -> [String] {
    let fields = line.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
    guard fields.count == 3 else { return [] }
    let controllers = Array(fields[1]).shown
    guard controllers.isEmpty || controllers.split(separator: ",").contains("memory") else { return [] }
    let (root, name) =
      controllers.isEmpty
      ? ("/sys/fs/cgroup", "memory.max") : ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
    let names = Array(fields[2]).shown.split(separator: "/")
    return (0...names.count).map {
      ([root] + names.prefix($0).map(String.init) + [name]).joined(separator: "/")
    }
  }

  /// The lowest of the numbers in the files; nil if there are none. `max`, for no limit, is none.
  static func lowest(in files: [String]) -> Int? {
    files.compactMap { file in
      let text = try? withCName(Array(file.utf8)) { name throws(Errno) in
        try Descriptor.open(name, [.read]).readAll()
      }
      return text.flatMap { Int($0.shown.prefix { !$0.isWhitespace }) }
    }.min()
  }
}
