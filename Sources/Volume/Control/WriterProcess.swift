import Fuse
import Glibc
import Posix

/// What proc(5) tells about a process that writes to the control file.
extension Caller {
  /// Whether both are threads of one process.
  func isInProcess(of other: Caller) -> Bool {
    // 0 stands for any thread outside our PID namespace.
    guard thread != 0, other.thread != 0 else { return false }
    return thread == other.thread || access("/proc/\(thread)/task/\(other.thread)", F_OK) == 0
  }

  /// Whether the process has ended; false if it is hidden from this one.
  var hasEnded: Bool {
    if thread == 0 { return false }
    if kill(thread, 0) != 0 { return errno == ESRCH }
    // Its parent may not have waited for it yet.
    let state = (try? contents("status")).flatMap { Self.field("State", in: $0) }
    return state?.first == UInt8(ascii: "Z")
  }

  /// The whole process, which may outlive the thread; the caller itself if it cannot be examined.
  var process: Caller {
    // 0 stands for any thread outside our PID namespace.
    guard thread != 0, let status = try? contents("status"), let group = Self.field("Tgid", in: status),
      let number = Int32(String(decoding: group, as: UTF8.self))
    else { return self }
    return Caller(user: user, thread: number)
  }

  /// Whether the process has a file of this name open; false if it has ended or cannot be examined.
  ///
  /// The path is not compared, since the process may see the mount at another one.
  func hasOpenFile(named name: [UInt8]) -> Bool {
    let end = [UInt8(ascii: "/")] + name
    var isOpen = false
    do throws(Errno) {
      let files = try Descriptor.open(Array("/proc/\(thread)/fd".utf8), [.read, .directory])
      try files.forEachEntry { entry throws(Errno) in
        if isOpen { return }
        isOpen = Self.target(of: entry.name, in: files).suffix(end.count).elementsEqual(end)
      }
    } catch { return false }
    return isOpen
  }

  /// The target of a symbolic link; empty if it has none.
  private static func target(of name: CName, in directory: borrowing Descriptor) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, count in
      buffer.withMemoryRebound(to: CChar.self) {
        guard let start = $0.baseAddress else { return }
        count = max(0, readlinkat(directory.rawValue, name, start, $0.count))
      }
    }
  }
}
