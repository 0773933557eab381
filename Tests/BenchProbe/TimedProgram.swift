import Glibc
import Posix

/// A program on PATH with its arguments, run to completion with its standard output discarded.
struct TimedProgram {
  private let arguments: [String]

  init(_ arguments: [String]) {
    self.arguments = arguments
  }

  /// The elapsed time, and the CPU time of the program and its children.
  func cost() throws(Failure) -> Cost {
    let processorStart = Self.processorTime()
    let start = now()
    try run()
    let elapsed = now() - start
    return Cost(elapsed: Double(elapsed), processor: Double(Self.processorTime() - processorStart))
  }

  /// The time from the start of this program, which mounts, until a path in the mount exists.
  func cost(untilExists path: String) throws(Failure) -> Cost {
    let timeout = 10_000_000_000
    let start = now()
    try run()
    var attributes = stat()
    // Some programs fork into the background before they have mounted.
    while stat(path, &attributes) != 0 {
      if now() - start > timeout { throw Failure(refused: path) }
      usleep(100)
    }
    return Cost(elapsed: Double(now() - start), processor: 0)
  }

  private func run() throws(Failure) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    let vector = arguments.map { strdup($0) }
    defer { for argument in vector { free(argument) } }
    var child = pid_t()
    let result = posix_spawnp(&child, arguments[0], &actions, nil, vector + [nil], environ)
    guard result == 0 else { throw Failure("\(arguments[0]): \(Errno(rawValue: result))") }
    var status: CInt = 0
    while waitpid(child, &status, 0) == -1, errno == EINTR {}
    guard status == 0 else { throw Failure("failed: \(arguments.joined(separator: " "))") }
  }

  /// The CPU nanoseconds of terminated children.
  private static func processorTime() -> Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
    let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
    return seconds * 1_000_000_000 + Int(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000
  }
}
