import CLibrary

/// How a child process ended.
public enum ChildOutcome {
  /// With exit status 0.
  case succeeded
  /// PATH has no such program.
  case notFound
  /// The program's last line of output.
  case failed(String)
  /// It was killed, since it was no longer wanted.
  case ended
}

/// Runs a program found on PATH until it exits, and captures its output.
/// - Parameter operand: the last argument, which need not be UTF-8.
public func runQuietly(_ program: String, _ arguments: [String], _ operand: [UInt8]) -> ChildOutcome {
  runQuietly(([program] + arguments).map { Array($0.utf8) } + [operand], nil)
}

/// - Parameters:
///   - words: the program and its arguments.
///   - end: the group of the program is killed once this descriptor is readable; -1 for never.
private func runQuietly(
  _ words: [[UInt8]], _ attributes: UnsafePointer<posix_spawnattr_t>?, until end: CInt = -1
) -> ChildOutcome {
  guard let stream = tmpfile() else {
    return .failed("cannot create a temporary file: \(String(cString: strerror(errno)))")
  }
  defer { fclose(stream) }
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  posix_spawn_file_actions_adddup2(&actions, fileno(stream), STDOUT_FILENO)
  posix_spawn_file_actions_adddup2(&actions, fileno(stream), STDERR_FILENO)

  let vector = words.map(copy)
  defer { for argument in vector { free(argument) } }
  let program = (words.first ?? []).map { CChar(bitPattern: $0) } + [0]
  var child = pid_t()
  guard posix_spawnp(&child, program, &actions, attributes, vector + [nil], environ) == 0 else {
    return .notFound
  }
  let isWanted = end < 0 || hasEnded(child, before: end)
  if !isWanted { kill(-child, SIGKILL) }
  let status = wait(for: child)
  if status == 0 { return .succeeded }
  if !isWanted { return .ended }
  return .failed(
    LastLine.read(from: fileno(stream)).map(String.init)
      ?? "\(String(decoding: words.first ?? [], as: UTF8.self)) failed")
}

/// Waits for a child process.
/// - Returns: false if a descriptor becomes readable before.
private func hasEnded(_ child: pid_t, before end: CInt) -> Bool {
  guard let process = try? ProcessDescriptor(child) else { return true }
  var polled = [
    pollfd(fd: process.rawValue, events: Int16(POLLIN), revents: 0),
    pollfd(fd: end, events: Int16(POLLIN), revents: 0),
  ]
  while poll(&polled, nfds_t(polled.count), -1) < 0 {}
  return polled[0].revents != 0
}

/// Child processes.
public enum ChildProcess {
  /// Runs a program found on PATH until it exits.
  /// - Parameters:
  ///   - words: its name and its arguments, which need not be UTF-8.
  ///   - variables: `NAME=VALUE`, added to the environment.
  ///   - input: its standard input.
  /// - Returns: why it could not be started; nil if it ran.
  public static func run(
    _ words: [[UInt8]], adding variables: [[UInt8]], input: borrowing Descriptor
  ) -> Errno? {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input.rawValue, STDIN_FILENO)

    let arguments = words.map(copy)
    let added = variables.map(copy)
    defer { for text in arguments + added { free(text) } }
    var environment: [UnsafeMutablePointer<CChar>?] = added
    var next = environ
    while let variable = next.pointee {
      environment.append(variable)
      next += 1
    }
    var child = pid_t()
    let program = (words.first ?? []).map { CChar(bitPattern: $0) } + [0]
    let error = posix_spawnp(&child, program, &actions, nil, arguments + [nil], environment + [nil])
    if error != 0 { return Errno(rawValue: error) }
    _ = wait(for: child)
    return nil
  }
}

extension ChildProcess {
  /// Runs a program found on PATH in a process group of its own, so that Ctrl-C does not end what it starts, with signals as
  /// programs expect them, and without input and output. Returns when it exits.
  /// - Parameters:
  ///   - words: its name and its arguments, which need not be UTF-8.
  ///   - mask: its umask, which posix_spawn(3) cannot set.
  public static func runApart(_ words: [[UInt8]], umask mask: mode_t) {
    let shell = ["/bin/sh", "-c", #"umask "$0" && exec "$@""#, "0" + String(mask & 0o777, radix: 8)]
    spawnApart(shell.map { Array($0.utf8) } + words)
  }

  /// As `runQuietly`, but in a process group of its own, so that Ctrl-C does not end it, and with signals as programs expect
  /// them.
  /// - Parameters:
  ///   - words: the program and its arguments, which need not be UTF-8.
  ///   - end: all processes of the group are killed once this descriptor is readable.
  public static func runQuietlyApart(_ words: [[UInt8]], until end: CInt) -> ChildOutcome {
    withAttributesApart { runQuietly(words, $0, until: end) }
  }

  private static func spawnApart(_ words: [[UInt8]]) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for file in STDIN_FILENO...STDERR_FILENO {
      posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_RDWR, 0)
    }
    let arguments = words.map(copy)
    defer { for text in arguments { free(text) } }
    let program = (words.first ?? []).map { CChar(bitPattern: $0) } + [0]
    var child = pid_t()
    let error = withAttributesApart { attributes in
      posix_spawnp(&child, program, &actions, attributes, arguments + [nil], environ)
    }
    if error == 0 { _ = wait(for: child) }
  }

  /// Attributes of a process in a group of its own, with all signals as they are by default.
  private static func withAttributesApart<Result>(_ body: (UnsafePointer<posix_spawnattr_t>) -> Result)
    -> Result
  {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP
    posix_spawnattr_setflags(&attributes, Int16(flags))
    return body(&attributes)
  }
}

/// A copy for a vector of arguments, to be freed.
func copy(_ text: [UInt8]) -> UnsafeMutablePointer<CChar>? {
  strndup(text.map { CChar(bitPattern: $0) }, text.count)
}

/// Waits until a child process exits.
/// - Returns: how, as wait(2) has it.
func wait(for child: pid_t) -> CInt {
  var status: CInt = 0
  while waitpid(child, &status, 0) == -1, errno == EINTR {}
  return status
}
