import Fuse
import Glibc
import Posix

extension Caller {
  /// `AT_SECURE` of getauxval(3): set if execve(2) gave the process rights that the one before did not have.
  private static let secure = 23

  /// Whether the calling process has its rights from the user who started it, and not from a set-user-ID program.
  ///
  /// Anyone can start such a program with an open file as its standard error, and choose a part of what it prints
  /// there. False if the process cannot be examined; root's cannot be by a daemon of another user.
  var hasOwnRights: Bool {
    // 0 stands for any thread outside our PID namespace.
    guard thread != 0, let status = try? contents("status"), let auxiliary = try? contents("auxv") else {
      return false
    }
    return Self.hasOneUser(status) && !Self.isSecure(auxiliary)
  }

  /// Whether the calling process is in a group; false if it cannot be examined.
  func isMember(of group: UInt32) -> Bool {
    guard thread != 0, let status = try? contents("status") else { return false }
    return Self.isMember(of: group, status)
  }

  /// Whether the file system group ID or a supplementary one in `/proc/PID/status` is the group.
  static func isMember(of group: UInt32, _ status: [UInt8]) -> Bool {
    let name = String(group).utf8
    for line in status.split(separator: UInt8(ascii: "\n")) {
      let words = line.split { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ") }
      guard let title = words.first else { continue }
      let groups = title.elementsEqual("Gid:".utf8) ? words.suffix(1) : words.dropFirst()
      let hasGroups = title.elementsEqual("Gid:".utf8) || title.elementsEqual("Groups:".utf8)
      if hasGroups, groups.contains(where: { $0.elementsEqual(name) }) { return true }
    }
    return false
  }

  /// A file of the thread in proc(5).
  func contents(_ name: String) throws(Errno) -> [UInt8] {
    try Descriptor.open(Array("/proc/\(thread)/\(name)".utf8), [.read]).readAll(limit: 64 << 10)
  }

  /// The value of a field of `/proc/PID/status`; nil without it.
  static func field(_ name: String, in status: [UInt8]) -> ArraySlice<UInt8>? {
    let start = Array((name + ":\t").utf8)
    return status.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: start) }?.dropFirst(
      start.count)
  }

  /// Whether the real, effective, saved and file system user IDs in `/proc/PID/status` are equal.
  static func hasOneUser(_ status: [UInt8]) -> Bool {
    guard let field = field("Uid", in: status) else { return false }
    let users = field.split { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ") }
    return users.count == 4 && Set(users).count == 1
  }

  /// Whether `/proc/PID/auxv`, pairs of words, has an `AT_SECURE` other than 0, or none.
  static func isSecure(_ auxiliary: [UInt8]) -> Bool {
    let word = MemoryLayout<UInt>.size
    return auxiliary.withUnsafeBytes { bytes in
      for offset in stride(from: 0, through: bytes.count - 2 * word, by: 2 * word)
      where bytes.loadUnaligned(fromByteOffset: offset, as: UInt.self) == UInt(secure) {
        return bytes.loadUnaligned(fromByteOffset: offset + word, as: UInt.self) != 0
      }
      return true
    }
  }
}
