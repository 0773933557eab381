import CLinux
import CLibrary

/// A run of an open program that ends within a time, and prints no more than a bounded text.
public struct BoundedRun: Sendable {
  /// How the run ended.
  public enum End: Sendable, Equatable {
    case exited(CInt)
    case signal(CInt)
    /// It was killed.
    case timedOut
  }

  public let end: End
  /// The first bytes of its standard output and standard error.
  public let output: [UInt8]

  /// The most bytes of output that are kept.
  private static let outputLimit = 16 << 10
  /// The number of the program's descriptor in the child.
  private static let programNumber = STDERR_FILENO + 1

  /// Executes the file of a descriptor, which may be open with `O_PATH`, in a process group of its own with standard input
  /// from `/dev/null`, no other open files, and no blocked signals. After the timeout the group is killed.
  /// - Parameters:
  ///   - program: what is executed, whatever has its name meanwhile.
  ///   - arguments: its name and its arguments, which need not be UTF-8.
  /// - Throws: what execve(2) answers; EMFILE, EAGAIN, ENOMEM.
  public init(
    of program: borrowing Descriptor, _ arguments: [[UInt8]], timeoutMilliseconds limit: CInt
  ) throws(Errno) {
    let deadline = TimeSpec.monotonic.advanced(byMilliseconds: limit)
    var ends: [CInt] = [-1, -1]
    _ = try checked { linux_pipe(&ends) }
    let source = Descriptor(owning: ends[0])
    let child: pid_t
    do {
      let target = Descriptor(owning: ends[1])
      child = try Self.spawn(program.rawValue, arguments, output: target.rawValue)
    }
    output = Self.read(source, until: deadline)
    end = Self.wait(for: child, until: deadline)
  }

  private static func spawn(
    _ program: CInt, _ words: [[UInt8]], output: CInt
  ) throws(Errno) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
    posix_spawn_file_actions_adddup2(&actions, program, programNumber)
    linux_spawn_close_from(&actions, programNumber + 1)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
    let arguments = words.map(copy)
    defer { for argument in arguments { free(argument) } }
    var child = pid_t()
    let error = posix_spawn(
      &child, "/proc/self/fd/\(programNumber)", &actions, &attributes, arguments + [nil], environ)
    if error != 0 { throw Errno(rawValue: error) }
    return child
  }

  /// Reads until all that have the other end have closed it; what exceeds the limit is dropped.
  private static func read(_ source: borrowing Descriptor, until deadline: TimeSpec) -> [UInt8] {
    var output: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      var polled = pollfd(fd: source.rawValue, events: Int16(POLLIN), revents: 0)
      let ready = poll(&polled, 1, deadline.milliseconds(since: .monotonic))
      if ready < 0, errno == EINTR { continue }
      guard ready > 0 else { return output }
      let count = CLibrary.read(source.rawValue, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return output }
      output += chunk[..<min(count, outputLimit - output.count)]
      // One that prints without end never lets poll(2) run into the timeout.
      if deadline.milliseconds(since: .monotonic) == 0 { return output }
    }
  }

  private static func wait(for child: pid_t, until deadline: TimeSpec) -> End {
    var status: CInt = 0
    while waitpid(child, &status, WNOHANG) != child {
      if deadline.milliseconds(since: .monotonic) == 0 {
        kill(-child, SIGKILL)
        // One that the kernel cannot end now is left to the end of this process.
        for _ in 0..<100 where waitpid(child, &status, WNOHANG) == 0 { usleep(1000) }
        return .timedOut
      }
      usleep(1000)
    }
    // What it has started goes with it.
    kill(-child, SIGKILL)
    let signal = status & 0x7F
    return signal == 0 ? .exited(status >> 8 & 0xFF) : .signal(signal)
  }
}
