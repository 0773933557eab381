import Glibc
import Posix
import TestSupport

/// A setting of the kernel's, changed for a test and restored after it, whatever becomes of the test.
final class KernelLimit {
  private let path: ByteString
  private let before: String
  /// Restores the setting also when this process is killed.
  private let guardian: Child

  /// - Parameter name: as sysctl(8) writes it.
  init(_ name: String, _ value: Int) throws {
    path = "/proc/sys" / ByteString(name.split(separator: ".").joined(separator: "/"))
    before = String(try path.readText().prefix { !$0.isWhitespace })
    guardian = try Child(
      .shell(
        #"while kill -0 "$1"; do sleep 0.2; done 2>&-; echo "$2" > "$3""#, ByteString("\(getpid())"),
        ByteString(before), path))
    try set("\(value)")
  }

  deinit { restore() }

  /// Restores it now.
  func restore() {
    try? set(before)
    try? guardian.kill()
  }

  private func set(_ value: String) throws {
    // The file of a setting can be neither made nor truncated.
    try path.overwrite([UInt8](value.utf8), at: 0)
  }

  /// Leaves the tests' user that many inotify watches more than there are.
  static func watches(_ more: Int) throws -> KernelLimit {
    try KernelLimit("fs.inotify.max_user_watches", try watchesInUse() + more)
  }

  /// The event queues of inotify instances that are made from now on hold that many events.
  static func queuedEvents(_ count: Int) throws -> KernelLimit {
    try KernelLimit("fs.inotify.max_queued_events", count)
  }

  private static func watchesInUse() throws -> Int {
    // Processes come and go meanwhile.
    let script =
      #"find /proc -maxdepth 1 -name '[0-9]*' -user "$(id -u)" -printf '%p/fdinfo\0'"#
      + " | xargs -0 grep -rhs ^inotify | wc -l"
    let outcome = try Command.shell(script).run()
    guard let count = Int(outcome.outputText.filter(\.isNumber)) else {
      throw TestFailure("cannot count the inotify watches: \(outcome.errorText)")
    }
    return count
  }
}
