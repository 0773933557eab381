import Glibc
import Posix

/// Ends mounts that outlive their deadline. It has its own thread because a test may itself block in a request to
/// a hung mount.
final class Watchdog: Sendable {
  private struct Entry {
    var point: ByteString
    var process: pid_t?
    var deadline: Double
  }

  static let shared = Watchdog()
  private let entries = Locked<[Int: Entry]>([:])
  private let counter = Locked(0)

  private init() {
    _ = try? Thread(name: "test watchdog") {
      while true {
        Clock.sleep(0.25)
        Watchdog.shared.endExpiredMounts()
      }
    }
  }

  /// Guards a mount until `remove(_:)` is called with the returned number.
  func add(_ point: ByteString, process: pid_t?, seconds: Double) -> Int {
    let number = counter.withLock { counter in
      counter += 1
      return counter
    }
    let entry = Entry(point: point, process: process, deadline: Clock.now + seconds)
    entries.withLock { $0[number] = entry }
    return number
  }

  /// Ends the guard.
  func remove(_ number: Int) { entries.withLock { _ = $0.removeValue(forKey: number) } }

  private func endExpiredMounts() {
    let now = Clock.now
    let late = entries.withLock { entries in
      let late = entries.filter { $0.value.deadline < now }
      for number in late.keys { entries.removeValue(forKey: number) }
      return late.values
    }
    for entry in late {
      let line =
        "watchdog: the mount at \(entry.point) has exceeded its lifetime and is ended\n"
      _ = line.utf8CString.withUnsafeBytes { write(2, $0.baseAddress, $0.count - 1) }
      // Closing its /dev/fuse descriptor makes the kernel fail every pending request.
      if let process = entry.process { kill(process, SIGKILL) }
      MountTable.abandon(entry.point)
    }
  }
}
