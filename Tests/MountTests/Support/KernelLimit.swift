import Glibc
import Posix
import TestSupport

/// A sysctl value, changed for a test and restored after it, even if the test crashes.
final class KernelLimit {
  private let path: ByteString
  private let before: String
  /// A child process that restores the value when this process dies.
  private let guardian: Child

  /// - Parameter name: in the notation of sysctl(8).
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

  /// Restores the value now.
  func restore() {
    try? set(before)
    try? guardian.kill()
  }

  private func set(_ value: String) throws {
    // Without O_CREAT and O_TRUNC, which /proc/sys refuses.
    try path.overwrite([UInt8](value.utf8), at: 0)
  }

  /// Allows the current user `more` inotify watches beyond those in use.
  static func watches(_ more: Int) throws -> KernelLimit {
    try KernelLimit("fs.inotify.max_user_watches", try watchesInUse() + more)
  }

  /// Sets the queue length of inotify instances created from now on.
  static func queuedEvents(_ count: Int) throws -> KernelLimit {
    try KernelLimit("fs.inotify.max_queued_events", count)
  }

  /// The watches in the descriptors of all processes of this user. A worker shares its holder's.
  private static func watchesInUse() throws -> Int {
    // Processes may exit meanwhile.
    let script = #"""
      for process in $(find /proc -maxdepth 1 -name '[0-9]*' -user "$(id -u)"); do
        read -r name < "$process/comm" && parent=$(awk '/^PPid:/ { print $2 }' "$process/status") || continue
        if [ "$name" = bundlefs ] && [ "$(cat "/proc/$parent/comm")" = bundlefs ]; then continue; fi
        cat "$process"/fdinfo/*
      done 2>&- | grep -c ^inotify
      """#
    let outcome = try Command.shell(script).run()
    guard let count = Int(outcome.outputText.filter(\.isNumber)) else {
      throw TestFailure("cannot count the inotify watches: \(outcome.errorText)")
    }
    return count
  }
}
