import CLibrary

/// Names a process, and no later one that gets its ID.
public struct ProcessIdentity: Hashable, Sendable {
  /// The process ID.
  public let id: pid_t
  /// When it started, in clock ticks after the boot: field 22 of `/proc/PID/stat`; 0 if that is unknown.
  public let start: UInt64

  /// Creates an identity from its parts.
  public init(id: pid_t, start: UInt64) { (self.id, self.start) = (id, start) }

  /// The calling process.
  public static var current: ProcessIdentity {
    ProcessIdentity(id: getpid(), start: ProcessStatus(of: getpid())?.start ?? 0)
  }

  /// Whether the process still runs. A zombie does not; a process that may not be examined counts as running.
  public var isRunning: Bool {
    if let status = ProcessStatus(of: id) {
      return !status.hasEnded && (start == 0 || status.start == start)
    }
    return kill(id, 0) == 0 || errno == EPERM
  }
}

/// What `/proc/PID/stat` says; see proc_pid_stat(5).
struct ProcessStatus {
  /// In clock ticks after the boot.
  let start: UInt64
  /// Whether it is a zombie, or dead.
  let hasEnded: Bool

  init?(of process: pid_t) {
    guard
      let line = try? Descriptor.open(Array("/proc/\(process)/stat".utf8), [.read]).readAll(limit: 1 << 16)
    else { return nil }
    self.init(line)
  }

  /// - Parameter line: its name, in parentheses, may contain any byte.
  init?(_ line: [UInt8]) {
    guard let end = line.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    // From the third field on.
    let fields = line[(end + 1)...].split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
    guard fields.count > 19, let start = UInt64(String(decoding: fields[19], as: UTF8.self)) else {
      return nil
    }
    self.start = start
    hasEnded = [UInt8(ascii: "Z"), UInt8(ascii: "X"), UInt8(ascii: "x")].contains(fields[0].first)
  }
}
