import Glibc
import Posix

enum MemoryLimit {
  /// A part of the limit that the process's control groups set, by default a quarter, at most this many bytes.
  static func share(atMost bytes: Int, divisor: Int = 4) -> Int {
    min(bytes, (lowest(in: files()) ?? Int.max) / divisor)
  }

  /// Those of the ancestors too: a container may not see its own group, but the root's file has the limit.
  private static func files() -> [String] {
    let groups = (try? Descriptor.open("/proc/self/cgroup", [.read]).readAll()) ?? []
    return groups.split(separator: UInt8(ascii: "\n")).flatMap { files(ofGroup: Array($0)) }
  }

  /// - Parameter line: a line of /proc/self/cgroup, `NUMBER:CONTROLLERS:/PATH`; version 2 has no controllers.
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

  /// The lowest number in the files; nil without any. `max` means no limit.
  static func lowest(in files: [String]) -> Int? {
    files.compactMap { file in
      let text = try? Descriptor.open(file, [.read]).readAll()
      return text.flatMap { Int($0.shown.prefix { !$0.isWhitespace }) }
    }.min()
  }
}

enum DescriptorLimit {
  /// Bytes of the kernel's memory that a control group is charged for an open file with its inode, about.
  private static let bytesPerFile = 2048
  /// Files that may be kept open however little memory there is.
  private static let fewest = 64

  /// Raises RLIMIT_NOFILE to its hard limit.
  /// - Returns: the number of files that may be kept open; the rest is reserved for layers and requests. The kernel cannot
  ///   reclaim the memory of open files, so they get a sixteenth of a control group's.
  static func raise() -> Int {
    let memory = MemoryLimit.share(atMost: Int.max, divisor: 16)
    return min(raiseNumber(), max(fewest, memory / bytesPerFile))
  }

  /// The fewest files that a process must be allowed to open, for threads, layers and requests.
  private static let needed: rlim_t = 64

  /// - Throws: if RLIMIT_NOFILE allows fewer than a mount needs. Such a mount would fail later, and at what is asked of it.
  static func check() throws(Failure) {
    guard let limit = current, limit.rlim_max < needed else { return }
    throw .failed(
      "a mount needs \(needed) open files, but RLIMIT_NOFILE allows \(limit.rlim_max); see 'ulimit -Hn'")
  }

  private static var current: rlimit? {
    var limit = rlimit()
    return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
  }

  private static func raiseNumber() -> Int {
    guard var limit = current else { return 256 }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    let all = Int(clamping: min(limit.rlim_cur, rlim_t(ThisProcess.mostReservedFiles)))
    return all < 512 ? max(8, all / 3) : all - max(128, all / 8)
  }
}
