/// Runs programs under a seccomp filter, as containers do.
public enum RefusedCalls {
  /// Loads a filter that answers some system calls with an error, and becomes the command.
  private static let script = """
    import ctypes, errno, os, platform, struct, sys
    numbers = {"x86_64": {"memfd_create": 319, "clone3": 435, "prctl": 157},
               "aarch64": {"memfd_create": 279, "clone3": 435, "prctl": 167}}[platform.machine()]
    refused = [numbers[name] for name in sys.argv[1].split(",")]
    instruction = lambda code, then, other, value: struct.pack("HBBI", code, then, other, value)
    program = instruction(0x20, 0, 0, 0)
    for index, number in enumerate(refused):
        program += instruction(0x15, len(refused) - index, 0, number)
    program += instruction(0x06, 0, 0, 0x7FFF0000)
    program += instruction(0x06, 0, 0, 0x00050000 | getattr(errno, sys.argv[2]))
    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]
    memory = ctypes.create_string_buffer(program, len(program))
    filter = Filter(len(program) // 8, ctypes.cast(memory, ctypes.c_void_p))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert prctl(22, 2, ctypes.byref(filter), 0, 0) == 0, ctypes.get_errno()  # PR_SET_SECCOMP
    os.execvp(sys.argv[3], sys.argv[3:])
    """

  /// The command, which gets the error for the calls.
  /// - Parameters:
  ///   - calls: of `memfd_create`, `clone3` and `prctl`.
  ///   - error: the error's name, such as `ENOSYS`.
  public static func command(_ command: Command, without calls: [String], _ error: String) -> Command {
    var limited = command
    limited.arguments =
      [
        "python3", "-c", ByteString(script), ByteString(calls.joined(separator: ",")), ByteString(error),
      ]
      + command.arguments
    return limited
  }
}
