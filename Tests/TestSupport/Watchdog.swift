import Glibc
import Posix

/// Ends mounts that hang: a thread of its own, since the test itself may be what hangs, in a call into the
/// mount that is never answered.
final class Watchdog: Sendable {
  private struct Guarded {
    var point: ByteString
    var process: pid_t?
    var deadline: Double
  }

  static let shared = Watchdog()
  private let guarded = Locked<[Int: Guarded]>([:])
  private let counter = Locked(0)

  private init() {
    _ = try? Thread(name: "test watchdog") {
      while true {
        Clock.sleep(0.25)
        Watchdog.shared.bite()
      }
    }
  }

  /// From now on and for that long the mount may live.
  func guardMount(_ point: ByteString, process: pid_t?, seconds: Double) -> Int {
    let number = counter.withLock { counter in
      counter += 1
      return counter
    }
    let entry = Guarded(point: point, process: process, deadline: Clock.now + seconds)
    guarded.withLock { $0[number] = entry }
    return number
  }

  /// The mount has ended by itself.
  func release(_ number: Int) { guarded.withLock { _ = $0.removeValue(forKey: number) } }

  private func bite() {
    let now = Clock.now
    let late = guarded.withLock { guarded in
      let late = guarded.filter { $0.value.deadline < now }
      for number in late.keys { guarded.removeValue(forKey: number) }
      return late.values
    }
    for entry in late {
      let line =
        "watchdog: the mount at \(entry.point) has had its time and is ended\n"
      _ = line.utf8CString.withUnsafeBytes { write(2, $0.baseAddress, $0.count - 1) }
      // Its descriptor of /dev/fuse closes with it, and the kernel fails every waiting request.
      if let process = entry.process { kill(process, SIGKILL) }
      MountTable.abandon(entry.point)
    }
  }
}
