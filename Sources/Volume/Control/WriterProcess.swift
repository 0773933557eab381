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
    return (try? contents("status")).map(Self.isZombie) ?? false
  }

  private static func isZombie(_ status: [UInt8]) -> Bool {
    status.split(separator: UInt8(ascii: "\n")).contains { $0.starts(with: "State:\tZ".utf8) }
  }

  /// The whole process, which may outlive the thread; the caller itself if it cannot be examined.
  var process: Caller {
    // 0 stands for any thread outside our PID namespace.
    guard thread != 0, let status = try? contents("status"), let number = Self.process(in: status) else {
      return self
    }
    return Caller(user: user, thread: number)
  }

  /// The thread group ID in `/proc/PID/status`.
  static func process(in status: [UInt8]) -> Int32? {
    for line in status.split(separator: UInt8(ascii: "\n")) where line.starts(with: "Tgid:".utf8) {
      return Int32(String(decoding: line.dropFirst("Tgid:\t".utf8.count), as: UTF8.self))
    }
    return nil
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
