import CLinux
import CLibrary

/// What the calling process is: its user, its working directory and its program. The process must be single-threaded.
public enum ThisProcess {
  /// The arguments, the program's name first; they need not be UTF-8. `CommandLine` has none where procfs is not mounted.
  /// Empty with another C library than glibc.
  public static var arguments: [[UInt8]] {
    guard let first = linux_arguments() else { return [] }
    return sequence(first: first) { $0 + 1 }.lazy.prefix { $0.pointee != nil }
      .compactMap { $0.pointee.map { [UInt8](bytesOf: $0) } }
  }

  /// Whether procfs is mounted at `/proc`.
  public static var hasProcfs: Bool { access("/proc/self/fd", F_OK) == 0 }

  /// Gives up root: sets all user and group IDs, and leaves no supplementary group.
  /// - Throws: EPERM; EINVAL for an ID that the user namespace lacks.
  public static func become(user: UInt32, group: UInt32) throws(Errno) {
    _ = try checked { setgroups(0, nil) }
    _ = try checked { setgid(group) }
    _ = try checked { setuid(user) }
  }

  /// Calls chdir(2).
  /// - Throws: ENOENT, ENOTDIR, EACCES.
  public static func enter(_ directory: [UInt8]) throws(Errno) {
    try withCName(directory) { path throws(Errno) in _ = try checked { chdir(path) } }
  }

  /// The most open files for which the kernel's table is prepared.
  public static let mostReservedFiles: UInt32 = 65_536

  /// Enlarges the kernel's table of open files in advance. While threads share it, each file that is opened during its
  /// growth waits for an RCU grace period, 10 ms and more.
  public static func reserveFiles() { linux_reserve_files(mostReservedFiles) }

  /// The kernel's release, such as `6.18.44-amd64`, from uname(2).
  public static var kernelRelease: String {
    var names = utsname()
    guard uname(&names) == 0 else { return "unknown" }
    return withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }

  /// Calls execvp(3): this process becomes a program that is found on PATH.
  /// - Parameter words: its name and its arguments, which need not be UTF-8.
  /// - Returns: why it could not.
  public static func execute(_ words: [[UInt8]]) -> Errno {
    var vector = words.map(copy) + [nil]
    guard let program = vector[0] else { return .noSuchFileOrDirectory }
    execvp(program, &vector)
    let error = Errno.current
    for word in vector { free(word) }
    return error
  }
}
