import CLinux
import CLibrary

/// A line of `/proc/self/mountinfo`.
public struct MountTableEntry: Sendable {
  /// The mount ID, unique while the mount exists.
  public let id: Int
  /// The mount ID that is never reused; the mount table does not have it.
  public var uniqueID: UInt64?
  /// The ID of the mount that this one is mounted on.
  public let parent: Int
  /// The device number of the mounted file system, as in `FileIdentity`.
  public let device: UInt64
  /// The absolute path of the mount point.
  public let mountPoint: [UInt8]
  /// The file system type with its subtype, as `fuse.bundlefs`.
  public let type: String
  /// What is mounted, as `fsname=` calls it.
  public let source: [UInt8]
  /// The `user_id` of a FUSE mount, set by the kernel; otherwise nil. As its own user namespace numbers users.
  public let user: UInt32?
  /// The `group_id`, likewise.
  public let group: UInt32?

  /// Whether bundlefs serves the mount.
  public var isBundlefs: Bool { type == "fuse.bundlefs" }

  /// The topmost mount at a path; nil if the path is not a mount point.
  public static func top(at path: [UInt8]) -> MountTableEntry? { all().last { $0.mountPoint == path } }

  /// The mounts of the process's namespace, oldest first.
  public static func all() -> [MountTableEntry] { all(in: "/proc/self/mountinfo") }

  /// The mounts of another process's namespace, oldest first; none if its table may not be read.
  public static func all(of process: pid_t) -> [MountTableEntry] { all(in: "/proc/\(process)/mountinfo") }

  private static func all(in file: String) -> [MountTableEntry] {
    let table = (try? Descriptor.open(Array(file.utf8), [.read]).readAll()) ?? []
    return table.split(separator: UInt8(ascii: "\n")).compactMap { MountTableEntry(line: $0) }
  }

  /// The mount that contains a path, of those that a condition holds for: the last one of those with the longest mount
  /// point.
  public static func containing(
    _ path: [UInt8], in mounts: [MountTableEntry] = all(),
    where condition: (MountTableEntry) -> Bool = { _ in true }
  ) -> MountTableEntry? {
    var found: MountTableEntry?
    for entry in mounts where isPrefix(entry.mountPoint, path) && condition(entry) {
      if entry.mountPoint.count >= found?.mountPoint.count ?? 0 { found = entry }
    }
    return found
  }

  private static func isPrefix(_ mountPoint: [UInt8], _ path: [UInt8]) -> Bool {
    let slash = UInt8(ascii: "/")
    return path.starts(with: mountPoint)
      && (mountPoint == [slash] || path.count == mountPoint.count || path[mountPoint.count] == slash)
  }

  /// Parses `36 35 0:45 / /point rw,… shared:1 - type source options`; nil if malformed.
  public init?(line: ArraySlice<UInt8>) {
    let fields = line.split(separator: UInt8(ascii: " "))
    guard fields.count > 6, let dash = fields[6...].firstIndex(where: { $0.elementsEqual("-".utf8) }),
      dash + 1 < fields.count
    else { return nil }
    id = Int(Self.text(fields[0])) ?? 0
    parent = Int(Self.text(fields[1])) ?? 0
    device = Self.device(fields[2])
    mountPoint = Array(fields[4]).withoutOctalEscapes
    type = Self.text(fields[dash + 1])
    source = dash + 2 < fields.count ? Array(fields[dash + 2]).withoutOctalEscapes : []
    let options = type.hasPrefix("fuse") ? fields.dropFirst(dash + 3).first : nil
    user = options.flatMap { Self.number("user_id=", in: $0) }
    group = options.flatMap { Self.number("group_id=", in: $0) }
  }

  private static func number(_ word: String, in options: ArraySlice<UInt8>) -> UInt32? {
    let option = options.split(separator: UInt8(ascii: ",")).last { $0.starts(with: word.utf8) }
    return option.flatMap { UInt32(text($0.dropFirst(word.utf8.count))) }
  }

  private static func device(_ field: ArraySlice<UInt8>) -> UInt64 {
    let numbers = field.split(separator: UInt8(ascii: ":")).map { UInt32(text($0)) ?? 0 }
    return numbers.count == 2 ? linux_makedev(numbers[0], numbers[1]) : 0
  }

  private static func text(_ bytes: some Sequence<UInt8>) -> String {
    String(decoding: Array(bytes), as: UTF8.self)
  }
}

extension [UInt8] {
  /// The bytes with each `\` and three octal digits replaced, by which mountinfo and fstab(5) escape space, tab, newline
  /// and backslash.
  public var withoutOctalEscapes: [UInt8] {
    var result: [UInt8] = []
    var index = 0
    while index < count {
      if self[index] == UInt8(ascii: "\\"), index + 3 < count,
        let byte = UInt8(String(decoding: self[(index + 1)...(index + 3)], as: UTF8.self), radix: 8)
      {
        result.append(byte)
        index += 4
      } else {
        result.append(self[index])
        index += 1
      }
    }
    return result
  }
}

/// Reports changes of the mount table by `POLLPRI`.
public struct MountTableWatch: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// Opens `/proc/self/mountinfo`.
  public init() throws(Errno) { descriptor = try Descriptor.open("/proc/self/mountinfo", [.read]) }

  /// The descriptor to poll.
  public var rawValue: CInt { descriptor.rawValue }
}
