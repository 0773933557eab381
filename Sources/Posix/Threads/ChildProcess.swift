import Glibc

/// How a child process ended.
public enum ChildOutcome {
  /// With exit status 0.
  case succeeded
  /// PATH has no such program.
  case notFound
  /// The program's last line of output.
  case failed(String)
}

/// Runs a program found on PATH until it exits, and captures its output.
/// - Parameter operand: the last argument, which need not be UTF-8.
public func runQuietly(_ program: String, _ arguments: [String], _ operand: [UInt8]) -> ChildOutcome {
  guard let stream = tmpfile() else {
    return .failed("cannot create a temporary file: \(String(cString: strerror(errno)))")
  }
  defer { fclose(stream) }
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  posix_spawn_file_actions_adddup2(&actions, fileno(stream), STDOUT_FILENO)
  posix_spawn_file_actions_adddup2(&actions, fileno(stream), STDERR_FILENO)

  let last = strndup(operand.map { CChar(bitPattern: $0) }, operand.count)
  let vector = ([program] + arguments).map { strdup($0) } + [last]
  defer { for argument in vector { free(argument) } }
  var child = pid_t()
  guard posix_spawnp(&child, program, &actions, nil, vector + [nil], environ) == 0 else { return .notFound }
  var status: CInt = 0
  while waitpid(child, &status, 0) == -1, errno == EINTR {}
  if status == 0 { return .succeeded }
  return .failed(LastLine.read(from: fileno(stream)).map(String.init) ?? "\(program) failed")
}
