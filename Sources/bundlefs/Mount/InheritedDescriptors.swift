import Glibc
import Posix

/// The descriptors that the caller left open. A daemon that kept them would hold its locks, and keep the pipes open by
/// which Foundation's `Process` and others notice the end of a command.
struct InheritedDescriptors {
  private var numbers: [CInt] = []

  /// Records the open descriptors above 2, and opens `/dev/null` for those of 0 to 2 that are closed, since whatever
  /// took their place would be taken for standard input or output. To be created before anything is opened.
  init() {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 {
      // The lowest free number is the one that is missing.
      _ = Glibc.open("/dev/null", O_RDWR)
    }
    guard let directory = try? Descriptor.open("/proc/self/fd", [.read, .directory]) else { return }
    try? directory.forEachEntry { entry in
      guard let number = CInt(String(cString: entry.name)) else { return }
      if number > STDERR_FILENO, number != directory.rawValue { numbers.append(number) }
    }
  }

  /// Closes them.
  func close() { for number in numbers { _ = Glibc.close(number) } }
}
