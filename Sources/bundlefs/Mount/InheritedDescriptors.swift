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
    numbers = OpenDescriptors.all().filter { $0 > STDERR_FILENO }
  }

  /// Closes them.
  func close() { for number in numbers { _ = Glibc.close(number) } }
}

/// The open descriptors of this process.
enum OpenDescriptors {
  static func all() -> [CInt] {
    guard let directory = try? Descriptor.open("/proc/self/fd", [.read, .directory]) else { return [] }
    var numbers: [CInt] = []
    try? directory.forEachEntry { entry in
      if let number = CInt(String(cString: entry.name)), number != directory.rawValue {
        numbers.append(number)
      }
    }
    return numbers
  }
}
