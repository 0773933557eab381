import Glibc
import Posix

/// The descriptors that the caller left open. A daemon that kept them would hold its locks, and keep the pipes open by
/// which Foundation's `Process` and others notice the end of a command.
struct InheritedDescriptors {
  private var numbers: [CInt] = []
  /// Those of 0 to 2 that were closed.
  private var missing: [CInt] = []

  /// Records the open descriptors above 2, and opens `/dev/null` for those of 0 to 2 that are closed, since whatever
  /// took their place would be taken for standard input or output. To be created before anything is opened.
  init() {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 {
      // The lowest free number is the one that is missing.
      _ = Glibc.open("/dev/null", O_RDWR)
      missing.append(number)
    }
    numbers = OpenDescriptors.all().filter { $0 > STDERR_FILENO }
  }

  /// Makes a program that this process becomes inherit what the caller left open, and nothing else.
  func passOn() { for number in missing { _ = fcntl(number, F_SETFD, FD_CLOEXEC) } }

  /// Closes them.
  func close() { for number in numbers { _ = Glibc.close(number) } }
}

/// The open descriptors of this process.
enum OpenDescriptors {
  static func all() -> [CInt] { others(than: []) }

  /// Those that are open beside others that are. Asks for each number: `/proc/self/fd` would make the kernel cache a name
  /// for each descriptor, and remove it when the process ends, which takes 25 ms for 20,000.
  static func others(than known: [CInt]) -> [CInt] {
    var isKnown = [Bool](repeating: false, count: Int(known.max() ?? 0) + 1)
    for file in known { isKnown[Int(file)] = true }
    var left = openCount.map { count in count - isKnown.count { $0 } } ?? .max
    var found: [CInt] = []
    for file in 0..<tableSize where file >= isKnown.count || !isKnown[Int(file)] {
      if left <= 0 { break }
      if fcntl(file, F_GETFD) < 0 { continue }
      found.append(file)
      left -= 1
    }
    return found
  }

  /// How many are open; nil before Linux 6.2.
  private static var openCount: Int? {
    let size = try? Descriptor.open("/proc/self/fd", [.pathOnly, .directory]).attributes().size
    guard let size, size > 0 else { return nil }
    // One was that of the directory.
    return Int(clamping: size) - 1
  }

  /// No descriptor is as great. The fallback is the usual limit.
  private static var tableSize: CInt {
    let status = try? Descriptor.open("/proc/self/status", [.read]).readToEnd()
    let line = status?.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: Array("FDSize:".utf8)) }
    let number = line.map { String(decoding: $0.dropFirst(7), as: UTF8.self) }
    return number?.split(whereSeparator: \.isWhitespace).first.flatMap { CInt($0) } ?? 1024
  }
}
